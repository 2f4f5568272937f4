// The desk for K classes as it is saved: its numbers to Python and back.
#include <nanobind/nanobind.h>

#include <utility>
#include <vector>

#include "arrays.hpp"
#include "class_desk.hpp"
#include "edge.hpp"
#include "guard_state.hpp"
#include "saving.hpp"

namespace truecast {

nb::dict state_of(hints::Hint& hint);  // of hints.cpp
bool take_state(hints::Hint& hint, const nb::dict& state);

namespace classes {

namespace {

// The tickets as they are saved, column by column.
struct Table {
    std::vector<std::int64_t> number, worst, key;
    Numbers forecast, kept;

    Entries entries() {
        return {{"number", number, 0, half_range, "of each ticket, increasing"},
                {"worst", worst, 0, half_range, "over 2^20: what is reserved for it"},
                {"key", key, 0, arc_end, "of each class: where on the arc it is credited"},
                {"forecast", forecast, 0, 1, "of each class: what was said"},
                {"kept", kept, -largest, largest, "scores, then the notes of the hints"}};
    }

    void add(const ClassPlaced& made) {
        worst.push_back(made.worst);
        for (const Share& each : made.shares) {
            key.push_back(each.key);
            forecast.push_back(each.said);
        }
    }

    void read(std::size_t at, std::size_t classes, ClassPlaced& made) const {
        made.worst = worst[at];
        made.shares.resize(classes);
        for (std::size_t k = 0; k < classes; ++k) {
            const std::size_t place = at * classes + k;
            const double none[aim_size] = {};
            const Placed one = placed(forecast[place], key[place], 0, none);
            made.shares[k] = {one.said, one.key, 0.0, one.price, one.off};
        }
    }
};

}  // namespace

nb::list described_tickets() { return described(Table().entries()); }

nb::dict table(ClassDesk& desk) {
    Table all;
    for (const auto& [number, ticket] : desk.tickets) {
        all.number.push_back(number);
        all.add(ticket.made);
        all.kept.insert(all.kept.end(), ticket.kept.begin(), ticket.kept.end());
    }
    return saved(all.entries());
}

void restore_tickets(ClassDesk& desk, std::int64_t issued, const nb::dict& columns) {
    Table all;
    load(all.entries(), columns);
    const std::size_t count = all.number.size(), classes = desk.classes();
    const std::size_t each = classes + desk.hint.notes();
    require(all.worst.size() == count && all.key.size() == count * classes &&
                all.forecast.size() == count * classes && all.kept.size() == count * each,
            "columns must be of one length");
    Tickets tickets;
    for (std::size_t t = 0; t < count; ++t) {
        Awaited& one = tickets[all.number[t]];
        all.read(t, classes, one.made);
        const double* const from = all.kept.data() + t * each;
        one.kept.assign(from, from + each);
    }
    require(tickets.size() == count, "tickets must have numbers of their own");
    desk.tickets = std::move(tickets);
    desk.issued = issued;
}

nb::dict saved_asked(ClassDesk& desk) {
    Table one;
    if (desk.guard.issued) {
        one.number.push_back(desk.guard.made.spill);
        one.add(desk.guard.made);
        one.kept = desk.asked;
    }
    return saved(one.entries());
}

void ask(ClassDesk& desk, const nb::dict& columns) {
    Table one;
    load(one.entries(), columns);
    const std::size_t classes = desk.classes(), count = one.number.size();
    require(count <= 1 && one.worst.size() == count && one.key.size() == count * classes &&
                one.forecast.size() == count * classes && one.kept.size() == count * classes &&
                desk.guard.issued == (count == 1),
            "one forecast is asked for, if an outcome is awaited");
    if (count == 0) return;
    one.read(0, classes, desk.guard.made);
    desk.guard.made.spill = one.number[0];
    desk.guard.asked = desk.guard.account(desk.guard.made);
    desk.asked = one.kept;
}

nb::dict saved_guard(ClassDesk& desk) {
    nb::dict all;
    all["classes"] = saved(static_cast<Guard&>(desk.guard));
    all["tops"] = saved(static_cast<Guard&>(desk.guard.tops));
    nb::list pushes;
    for (Nudge& push : desk.guard.pushes) pushes.append(saved(push.entries()));
    all["nudges"] = pushes;
    return all;
}

bool load_guard(ClassDesk& desk, const nb::dict& all) {
    ClassGuard read(desk.classes(), desk.guard.budget, desk.guard.nudges);
    load(static_cast<Guard&>(read), nb::cast<nb::dict>(all["classes"]));
    load(static_cast<Guard&>(read.tops), nb::cast<nb::dict>(all["tops"]));
    read.fields = static_cast<double>(desk.classes());
    require(read.groups.size() == desk.classes() && read.tops.groups.size() == desk.classes(),
            "there must be a field for each class");
    for (std::size_t k = 0; k < desk.classes(); ++k) {
        load(read.pushes[k].entries(), nb::cast<nb::dict>(all["nudges"][k]));
        if (!in_range(read.pushes[k].entries()) || !read.pushes[k].settle()) return false;
    }
    desk.guard = std::move(read);
    return true;
}

nb::list hint_entries(ClassDesk& desk) {
    nb::list all;
    all.append(described(desk.hint.entries()));
    return all;
}

nb::dict saved_hint(ClassDesk& desk) {
    nb::dict all = saved(desk.hint.entries());
    nb::list each;
    for (const auto& hint : desk.hint.each()) each.append(state_of(*hint));
    all["each"] = each;
    return all;
}

bool load_hint(ClassDesk& desk, const nb::dict& state) {
    ClassMix read(desk.hint);
    load(read.entries(), state);
    if (!in_range(read.entries()) || !read.settle()) return false;
    for (std::size_t k = 0; k < read.classes(); ++k)
        if (!take_state(*read.each()[k], nb::cast<nb::dict>(state["each"][k]))) return false;
    desk.hint = std::move(read);
    return true;
}

}  // namespace classes

}  // namespace truecast
