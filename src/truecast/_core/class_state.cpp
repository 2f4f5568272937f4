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
    std::vector<std::int64_t> event, members, group, about, made;
    Numbers aim;

    Entries entries() {
        return {{"number", number, 0, half_range, "of each ticket, increasing"},
                {"worst", worst, 0, half_range, "over 2^20: what is reserved for it"},
                {"key", key, 0, arc_end, "of each class: where on the arc it is credited"},
                {"forecast", forecast, 0, 1, "of each class: what was said"},
                {"kept", kept, -largest, largest, "scores, then the notes of the hints"},
                {"event", event, 0, 2 * half_range, "that it is about, 0 if it has no name"},
                {"members", members, 0, 0x1p28, "how many groups it is of, besides everyone"},
                {"group", group, 1, 0x1p32, "the numbers of these groups, ticket by ticket"},
                {"aim", aim, 0, 1,
                 "of tickets with groups: the hint, and the rows that their offsets made of it"},
                {"about", about, 0, 2 * half_range, "the events that some ticket is of"},
                {"made", made, 1, half_range, "how many forecasts there were of each"}};
    }

    void add(const ClassPlaced& row, std::int64_t about_) {
        worst.push_back(row.worst);
        for (const Share& each : row.shares) {
            key.push_back(each.key);
            forecast.push_back(each.said);
        }
        event.push_back(about_);
        members.push_back(static_cast<std::int64_t>(row.of.size()) - 1);
        group.insert(group.end(), row.of.begin() + 1, row.of.end());
        aim.insert(aim.end(), row.aim.begin(), row.aim.end());
    }

    // Whether columns are as long as they must be, with `each` numbers kept of a forecast.
    bool is_even(std::size_t classes, std::size_t each) const {
        const std::size_t count = number.size();
        return all_of_length(count, worst, event, members) &&
               all_of_length(count * classes, key, forecast) && kept.size() == count * each &&
               about.size() == made.size();
    }
};

// Reads forecasts of a table, from the first to the last.
class Reader {
    const Table& table;
    const std::size_t classes, groups;
    std::size_t at = 0, member = 0, aimed = 0;  // those that come next

  public:
    Reader(const ClassDesk& desk, const Table& from)
        : table(from), classes(desk.classes()), groups(desk.guard.group_count()) {}

    void read(ClassPlaced& made) {
        made.of = members_from(table.group, member, table.members[at], groups);
        made.aim.clear();
        if (made.of.size() > 1 && !table.aim.empty()) {
            require(table.aim.size() - aimed >= aim_size * classes,
                    "a forecast with groups was made from a hint");
            const double* const from = table.aim.data() + aimed;
            made.aim.assign(from, from + aim_size * classes);
            aimed += aim_size * classes;
        }
        made.worst = table.worst[at];
        made.shares.resize(classes);
        for (std::size_t k = 0; k < classes; ++k) {
            const std::size_t place = at * classes + k;
            const double none[aim_size] = {};
            const Placed one = placed(table.forecast[place], table.key[place], 0, none);
            made.shares[k] = {one.said, one.key, 0.0, one.price, one.off};
        }
        ++at;
    }

    bool at_end() const { return member == table.group.size() && aimed == table.aim.size(); }
};

}  // namespace

nb::list described_tickets() { return described(Table().entries()); }

nb::dict table(ClassDesk& desk) {
    Table all;
    for (const auto& [number, ticket] : desk.tickets) {
        all.number.push_back(number);
        all.add(ticket.made, ticket.event);
        all.kept.insert(all.kept.end(), ticket.kept.begin(), ticket.kept.end());
    }
    for (const auto& [event, count] : desk.events.all()) {
        all.about.push_back(event);
        all.made.push_back(count.made);
    }
    return saved(all.entries());
}

void restore_tickets(ClassDesk& desk, std::int64_t issued, const nb::dict& columns) {
    Table all;
    load(all.entries(), columns);
    const std::size_t count = all.number.size(), classes = desk.classes();
    const std::size_t each = classes + desk.hint.notes();
    require(all.is_even(classes, each), "columns must be of one length");
    Tickets tickets;
    Events events;
    for (std::size_t k = 0; k < all.about.size(); ++k) events.load(all.about[k], all.made[k]);
    Reader reader(desk, all);
    for (std::size_t t = 0; t < count; ++t) {
        Awaited& one = tickets[all.number[t]];
        reader.read(one.made);
        one.event = all.event[t];
        events.load_awaited(one.event);
        const double* const from = all.kept.data() + t * each;
        one.kept.assign(from, from + each);
    }
    require(tickets.size() == count, "tickets must have numbers of their own");
    require(reader.at_end(), "tickets must have as many groups and hints as they say");
    desk.tickets = std::move(tickets);
    desk.events = std::move(events);
    desk.issued = issued;
}

nb::dict saved_asked(ClassDesk& desk) {
    Table one;
    if (desk.guard.issued) {
        one.number.push_back(desk.guard.made.spill);
        one.add(desk.guard.made, Events::none);
        one.kept = desk.asked;
    }
    return saved(one.entries());
}

void ask(ClassDesk& desk, const nb::dict& columns) {
    Table one;
    load(one.entries(), columns);
    const std::size_t classes = desk.classes(), count = one.number.size();
    require(count <= 1 && one.is_even(classes, classes) && desk.guard.issued == (count == 1),
            "one forecast is asked for, if an outcome is awaited");
    if (count == 0) return;
    Reader reader(desk, one);
    reader.read(desk.guard.made);
    require(reader.at_end(), "a forecast must have as many groups and hints as it says");
    desk.guard.made.spill = one.number[0];
    desk.guard.ask();
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

bool load_guard(ClassDesk& desk, const nb::list& names, const nb::dict& all) {
    ClassGuard read(desk.classes(), desk.guard.budget, desk.guard.nudges);
    load(static_cast<Guard&>(read), nb::cast<nb::dict>(all["classes"]));
    load(static_cast<Guard&>(read.tops), nb::cast<nb::dict>(all["tops"]));
    read.fields = static_cast<double>(desk.classes());
    const std::size_t fields = read.groups.size();
    require(read.tops.groups.size() == fields && fields % desk.classes() == 0,
            "there must be a field for each class");
    if (nb::len(names) == 0 && read.group_count() == 1) read.add_group();
    require(read.group_count() == nb::len(names) + Seats::first,
            "there must be a name for each group");
    for (std::size_t k = 0; k < desk.classes(); ++k) {
        load(read.pushes[k].entries(), nb::cast<nb::dict>(all["nudges"][k]));
        if (!in_range(read.pushes[k].entries()) || !read.pushes[k].settle()) return false;
    }
    desk.guard = std::move(read);
    desk.seats.load(names);
    return true;
}

nb::list hint_entries(ClassDesk& desk) { return described(desk.hint.entries()); }

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
