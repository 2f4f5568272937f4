// The recalibrator's desk: a hint, a guard with its groups, and the tickets of forecasts whose
// outcomes are awaited.
//
// An operation is one call, and in it Python runs only before anything is changed, to check
// arguments. From then on no byte code runs, so neither an interrupt nor another thread can come in
// between: the operation happened or it did not.
//
// A hint that Python provides runs during it. Meanwhile the desk is busy, so that other
// calls are refused. It is asked before the guard is, and learns before the guard does: if it
// throws, the desk and its guard are as before.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "ahead.hpp"
#include "arrays.hpp"
#include "desk_base.hpp"
#include "edge.hpp"
#include "guard.hpp"
#include "guard_state.hpp"
#include "hints.hpp"
#include "saving.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace truecast {

void scores_of(const hints::HintHolder& held, nb::handle score,
               std::vector<hints::Score>& scores);  // of hints.cpp

namespace {

using hints::Hint;
using hints::HintHolder;
using Scores = std::vector<hints::Score>;

// A forecast until its outcome comes.
struct Awaited {
    Members several;  // its groups; nothing if it is of everyone only, as most are
    Placed made;
    std::int64_t event = Events::none;
    std::vector<double> kept;  // the scores, then the hint's notes

    const Members& groups() const {
        static const Members everyone{0};
        return several.empty() ? everyone : several;
    }
    double p() const { return made.said; }
    bool said(nb::handle p) const {
        return PyFloat_Check(p.ptr()) != 0 && PyFloat_AS_DOUBLE(p.ptr()) == made.said;
    }
};

// By their numbers, so oldest first. A node each: there is never a table to copy, so no call takes
// long.
using Tickets = std::map<std::int64_t, Awaited>;

struct Desk : DeskBase {
    nb::object hint;
    Guard guard;
    Tickets tickets;
    Scores row;  // of the round at hand

    Desk(nb::object hint_, double budget, bool nudges, nb::object ticket_type_, std::size_t groups,
         std::size_t tickets_)
        : DeskBase(std::move(ticket_type_), groups, tickets_),
          hint(std::move(hint_)),
          guard(budget, nudges) {
        guard.groups.resize(Seats::first);
    }

    HintHolder& held() const { return *nb::inst_ptr<HintHolder>(hint); }
    void give_up(const Awaited& forecast) { guard.give_up(forecast.made, forecast.groups()); }
};

// The check may run Python, and another thread may load a state meanwhile: hold on to the hint that
// is asked.
Scores checked_scores(const Desk& desk, nb::handle score) {
    const nb::object hint = desk.hint;
    Scores scores;
    scores_of(*nb::inst_ptr<HintHolder>(hint), score, scores);
    return scores;
}

std::vector<double> given(const Scores& scores, std::size_t notes = 0) {
    std::vector<double> all;
    all.reserve(scores.size() + notes);
    for (const hints::Score& score : scores) all.push_back(score.given);
    all.resize(scores.size() + notes);
    return all;
}

Scores again(const HintHolder& held, const double* given) {
    Scores scores;
    for (std::size_t k = 0; k < held.hint->inputs(); ++k) scores.push_back(held.score(given[k]));
    return scores;
}

double predict(Desk& desk, nb::handle score, nb::handle group) {
    const Scores scores = checked_scores(desk, score);
    const nb::object name = group_of(group);
    at_rest(unread(desk).held());
    const Busy working(desk);
    Seating seating(desk.seats, desk.guard);
    const Members of = seating.of(name);
    std::vector<double> asked = given(scores);
    const double hint = desk.held().hint->predict(scores.data());
    seating.keep();
    desk.asked = std::move(asked);
    return desk.guard.predict(hint, of);
}

void observe(Desk& desk, nb::handle y) {
    const bool bit = outcome(y) != 0;
    if (!unread(desk).guard.issued) refuse(no_forecast);
    HintHolder& held = at_rest(desk.held());
    const Busy working(desk);
    held.hint->learn(again(held, desk.asked.data()).data(), bit);
    desk.guard.observe(bit);
}

// A forecast to be issued: all that may fail comes first, `keep` changes the desk.
class Issue {
    Tickets room;
    double hint;

  public:
    Issue(Desk& desk, const Members& of, const Scores& scores, std::int64_t event) {
        Hint& from = *desk.held().hint;
        Awaited& forecast = room[desk.issued];
        if (of.size() > 1) forecast.several = of;
        forecast.event = event;
        forecast.kept = given(scores, from.notes());
        hint = from.issue(scores.data(), forecast.kept.data() + scores.size());
        from.shorten(forecast.kept.data() + scores.size());
        desk.events.prepare(event, desk.issued);
    }

    // The ticket that is given up if there is no room goes to `given_up`.
    double keep(Desk& desk, Tickets& given_up) {
        make_room(desk, given_up);
        Awaited& forecast = room.begin()->second;
        forecast.made = desk.guard.issue(hint, forecast.groups());
        keep_ticket(desk, room);
        return forecast.made.said;
    }
};

nb::object issue(Desk& desk, nb::handle score, nb::handle group, nb::handle event) {
    const Scores scores = checked_scores(desk, score);
    const nb::object name = group_of(group);
    const std::int64_t about = event_of(event);
    std::int64_t number;
    double said;
    {
        at_rest(unread(desk).held());
        const Busy working(desk);
        Seating seating(desk.seats, desk.guard);
        Issue forecast(desk, seating.of(name), scores, about);
        seating.keep();
        Tickets given_up;
        said = forecast.keep(desk, given_up);
        number = desk.issued - 1;
    }
    return ticket(desk.ticket_type, number, nb::float_(said));
}

// How much an outcome counts for the hint: those that come together may be one observation.
// The ticket goes to `resolved`, if it may have to come back.
void settle(Desk& desk, Tickets::iterator found, bool y, Tickets* resolved = nullptr) {
    const Awaited& forecast = found->second;
    const HintHolder& held = desk.held();
    held.read(forecast.kept.data(), desk.row);
    const std::int64_t mates = desk.events.mates(forecast.event);
    hints::Bursts bursts = desk.bursts;
    const double weight = bursts.weight((y ? 1.0 : 0.0) - forecast.made.said, mates);
    held.hint->learn(desk.row.data(), y, forecast.kept.data() + desk.row.size(), weight);
    desk.bursts = bursts;
    desk.guard.settle_late(forecast.made, forecast.groups(), y, {weight, bursts.effect()});
    desk.events.closed(forecast.event);
    if (resolved != nullptr)
        resolved->insert(resolved->end(), desk.tickets.extract(found));  // mostly in order
    else
        desk.tickets.erase(found);
}

void resolve(Desk& desk, nb::handle given, nb::handle y) {
    const bool bit = outcome(y) != 0;
    const auto found = Handed(desk.ticket_type, given).find(desk, given);
    at_rest(desk.held());
    const Busy working(desk);
    settle(desk, found, bit);
}

// The groups of tickets that a batch resolves, and how many residuals it adds to them.
struct Resolving {
    std::vector<std::uint32_t> groups;
    std::size_t additions = 0;

    void add(const Desk& desk, std::int64_t ticket) {
        const auto found = desk.tickets.find(ticket);
        if (found == desk.tickets.end()) return;  // of this batch, or not awaited
        const Members& of = found->second.groups();
        groups.insert(groups.end(), of.begin(), of.end());
        additions += of.size();
    }
};

// Everything that a batch changes, to go back to.
class Before : public TicketsBefore<Desk> {
    std::unique_ptr<Hint> hint;
    Undo guard;

  public:
    Before(Desk& of, const Plan& plan, const Resolving& resolving, std::size_t rounds, bool late)
        : TicketsBefore(of),
          hint(of.held().hint->clone()),
          guard(of.guard, changed_by(of, plan, rounds, late, resolving.groups),
                plan.additions + resolving.additions) {}

    void restore() {
        desk.held().hint = std::move(hint);
        guard.restore();
        restore_tickets();
    }
};

constexpr std::size_t short_block =
    16;  // rounds, of up to half a millisecond each if they are of a hundred groups
constexpr std::size_t long_block = 4096;  // of up to 5 microseconds: to start a thread takes 20

// Outcomes that come `late` can be many after one step.
std::size_t block_of(const Plan& plan, bool late, bool runs_python) {
    return late || plan.has_several() || runs_python ? short_block : long_block;
}

// Plays the `steps` of a batch, of which `rounds` are forecasts, by `play(plan, before, from, to)`;
// all or, if something is thrown, nothing.
template <typename Play>
void play_steps(Desk& desk, nb::handle groups, std::size_t rounds, std::size_t steps, bool late,
                const Resolving& resolving, Play play) {
    at_rest(unread(desk).held());
    const Busy working(desk);
    if (steps == 0) return;
    Seating seating(desk.seats, desk.guard);
    Plan plan(seating, groups, rounds);
    const Busy hinting(desk.held());
    Before before(desk, plan, resolving, rounds, late);
    const bool runs_python = desk.held().hint->runs_python();
    try {
        Play playing = std::move(play);  // ends here, with its threads, before all is restored
        in_blocks(
            steps, block_of(plan, late, runs_python),
            [&](std::size_t from, std::size_t to) { playing(plan, before, from, to); },
            runs_python);
        if (runs_python) desk.held().hint->at(-1);
        seating.keep();
    } catch (...) {
        before.restore();
        throw;
    }
}

// The same if every step is a round.
template <typename Play>
void play_whole(Desk& desk, nb::handle groups, std::size_t rounds, bool late, Play play) {
    play_steps(desk, groups, rounds, rounds, late, Resolving(), std::move(play));
}

void run(Desk& desk, Array<const double, 2> scores, nb::handle groups,
         Array<const std::uint8_t, 1> y, Array<double, 1> said, bool threads) {
    const std::size_t rounds = y.shape(0), models = scores.shape(1);
    require(scores.shape(0) == rounds && said.shape(0) == rounds,
            "there must be an entry for each outcome");
    require(models == desk.held().hint->inputs(), "there must be a score of each model");
    const auto one = [&](std::size_t t) { return (y.data()[t] & 1) != 0; };
    const bool runs_python = desk.held().hint->runs_python();
    // What the hint says of rounds: it learns from each at once, and needs nothing of the guard.
    std::vector<double> hinted;
    const auto hint = [&](std::size_t from, std::size_t to, std::vector<Aim>& aims) {
        hinted.resize(to - from);
        for (std::size_t t = from, next; t < to; t = next) {
            next = runs_python ? t + 1 : to;
            if (runs_python) desk.held().hint->at(static_cast<std::int64_t>(t));
            desk.held().play(scores.data() + t * models, y.data() + t, next - t, &hinted[t - from]);
        }
        aims.assign(hinted.begin(), hinted.end());
    };
    play_whole(desk, groups, rounds, false,
               [&, ahead = std::unique_ptr<Ahead<Aim>>()](Plan& plan, Before&, std::size_t from,
                                                          std::size_t to) mutable {
                   if (from == 0)
                       ahead =
                           std::make_unique<Ahead<Aim>>(rounds, to, threads && !runs_python, hint);
                   const std::vector<Aim>& aims = ahead->next();
                   for (std::size_t t = from; t < to; ++t) {
                       plan.look_ahead(desk.guard, t);
                       desk.guard.look_ahead(aims, t - from);
                       said.data()[t] = desk.guard.round(aims[t - from], plan.of(t), one(t));
                   }
               });
}

// Issue every round, and resolve after it what is known then. An outcome that was given up is
// passed over.
void replay(Desk& desk, Array<const double, 2> scores, nb::handle groups,
            Array<const std::uint8_t, 1> y, Array<const std::int64_t, 1> known_at,
            Array<const std::int64_t, 1> events, Array<double, 1> said) {
    const std::size_t rounds = y.shape(0), models = scores.shape(1);
    require(scores.shape(0) == rounds && said.shape(0) == rounds && known_at.shape(0) == rounds &&
                (events.shape(0) == rounds || events.shape(0) == 0),
            "there must be an entry for each outcome");
    require(models == desk.held().hint->inputs(), "there must be a score of each model");
    Known known(rounds);
    play_whole(desk, groups, rounds, true,
               [&](Plan& plan, Before& before, std::size_t t, std::size_t end) {
                   Hint& hint = *desk.held().hint;
                   const bool runs_python = hint.runs_python();
                   for (; t < end; ++t) {
                       plan.look_ahead(desk.guard, t);
                       if (runs_python) hint.at(static_cast<std::int64_t>(t));
                       desk.held().read(scores.data() + t * models, desk.row);
                       Issue forecast(desk, plan.of(t), desk.row, event_at(events, t));
                       said.data()[t] = forecast.keep(desk, before.given_up);
                       before.forget_own();
                       known.add(t, known_at.data()[t]);
                       known.after(t, [&](std::size_t s) {
                           const auto found =
                               desk.tickets.find(before.issued + static_cast<std::int64_t>(s));
                           if (runs_python) hint.at(static_cast<std::int64_t>(s));
                           if (found != desk.tickets.end())
                               settle(desk, found, (y.data()[s] & 1) != 0);
                       });
                   }
               });
}

// Issue and resolve, in the order of the steps: 0 is the next score, 1 the next ticket. Writes what
// was said of each, and returns the number of the first ticket that was issued.
std::int64_t steps(Desk& desk, Array<const double, 2> scores, nb::handle groups,
                   Array<const std::int64_t, 1> events, Array<const std::int64_t, 1> tickets,
                   Array<const std::uint8_t, 1> y, Array<const std::uint8_t, 1> order,
                   Array<double, 1> said) {
    const std::size_t rounds = scores.shape(0), models = scores.shape(1), all = order.shape(0);
    require(models == desk.held().hint->inputs(), "there must be a score of each model");
    require((events.shape(0) == rounds || events.shape(0) == 0) && tickets.shape(0) == y.shape(0),
            "there must be an entry for each score and ticket");
    require(rounds + y.shape(0) == all && said.shape(0) == all, "each must have a step");
    // Invariant: of the steps before t, `issued` took a score and `resolved` a ticket.
    std::size_t issued = 0, resolved = 0;
    const auto play = [&](Plan& plan, Before& before, std::size_t t, std::size_t end) {
        Hint& hint = *desk.held().hint;
        const bool runs_python = hint.runs_python();
        for (; t < end; ++t) {
            if (order.data()[t] == 0) {
                require(issued < rounds, "each must have a step");
                if (runs_python) hint.at(static_cast<std::int64_t>(issued));
                desk.held().read(scores.data() + issued * models, desk.row);
                Issue forecast(desk, plan.of(issued), desk.row, event_at(events, issued));
                said.data()[t] = forecast.keep(desk, before.given_up);
                before.forget_own();
                ++issued;
            } else {
                require(resolved < y.shape(0), "each must have a step");
                const auto found = desk.tickets.find(tickets.data()[resolved]);
                if (found == desk.tickets.end()) throw NotAwaited{resolved};
                if (runs_python) hint.at(static_cast<std::int64_t>(resolved));
                said.data()[t] = found->second.made.said;
                const bool own = found->first >= before.issued;  // it need not come back
                const bool one = (y.data()[resolved] & 1) != 0;
                settle(desk, found, one, own ? nullptr : &before.given_up);
                ++resolved;
            }
        }
    };
    try {
        Resolving resolving;
        unread(desk);
        for (std::size_t k = 0; k < y.shape(0); ++k) resolving.add(desk, tickets.data()[k]);
        play_steps(desk, groups, rounds, all, true, resolving, play);
        return desk.issued - static_cast<std::int64_t>(rounds);
    } catch (const NotAwaited& step) {
        refuse_row(tickets.data()[step.place], desk.issued, step.place);
    }
}

// On copies, so that all other calls go on meanwhile. `pieces`: none, or where to write on which
// piece of the map each score lies.
void place(Desk& desk, Array<const double, 2> scores, nb::handle groups, Array<double, 1> said,
           Array<std::int64_t, 1> pieces) {
    const std::size_t rounds = scores.shape(0), models = scores.shape(1);
    const bool tells = pieces.shape(0) > 0;
    require(!tells || pieces.shape(0) == rounds, "there must be a piece for each score, or none");
    require(said.shape(0) == rounds, "there must be an entry for each score");
    require(models == desk.held().hint->inputs(), "there must be a score of each model");
    if (rounds == 0) return;
    at_rest(unread(desk).held());
    std::optional<Busy<Desk>> copying(std::in_place, desk);
    Guard guard(desk.guard.budget, desk.guard.nudges);
    static_cast<Balance&>(guard) = desk.guard;
    std::optional<Seating<Guard>> seating(std::in_place, desk.seats, desk.guard);
    Plan plan(*seating, groups, rounds, true);
    guard.groups.clear();
    for (const std::uint32_t g : plan.used) guard.groups.push_back(desk.guard.groups[g]);
    plan.renumber();
    seating.reset();
    const HintHolder hint = desk.held().copy();
    const bool runs_python = hint.hint->runs_python();
    copying.reset();
    in_blocks(
        rounds, short_block,
        [&](std::size_t t, std::size_t end) {
            for (; t < end; ++t) {
                if (runs_python) hint.hint->at(static_cast<std::int64_t>(t));
                const double aim =
                    hint.hint->predict(again(hint, scores.data() + t * models).data());
                std::int64_t piece;
                said.data()[t] = guard.place(aim, plan.of(t), piece);
                if (tells) pieces.data()[t] = piece;
            }
        },
        runs_python);
}

// The tickets as they are saved, column by column.
struct Table {
    std::vector<std::int64_t> number, key, worst, event, members, group;
    std::vector<double> score, forecast;
    std::vector<std::uint16_t> aim;
    std::vector<std::uint8_t> same;
    std::vector<std::uint16_t> notes;
    std::vector<std::int64_t> whole, about, made;

    Entries entries() {
        return {{"number", number, 0, half_range, "of each ticket, increasing"},
                {"key", key, 0, arc_end, "where on the arc it is credited"},
                {"worst", worst, 0, half_range, "over 2^20: what is reserved for it"},
                {"event", event, 0, 2 * half_range, "that it is about, 0 if it has no name"},
                {"members", members, 0, 0x1p28, "how many groups it is of, besides everyone"},
                {"group", group, 1, 0x1p32, "the numbers of these groups, ticket by ticket"},
                {"score", score, -largest, largest, "one of each model, ticket by ticket"},
                {"forecast", forecast, 0, 1, "what was said"},
                {"aim", aim, 0, hints::short_one,
                 "of tickets with groups: the hint, and what their offsets said of it, in 16 bits"},
                {"same", same, 0, 1,
                 "whether the saved hint would give its notes again, or there are none"},
                {"notes", notes, 0, hints::no_short,
                 "of all other tickets, in 16 bits; 65535 if that changes them"},
                {"whole", whole, -2 * half_range, 2 * half_range,
                 "the notes that 16 bits would change: the bits of floats"},
                {"about", about, 0, 2 * half_range, "the events that some ticket is of"},
                {"made", made, 1, half_range, "how many forecasts there were of each"}};
    }

    // A note in 16 bits if it is a rough forecast; else its 64 bits go to those written as a whole.
    void write(double note) {
        const bool is_rough = hints::rough(note) == note && !std::signbit(note);
        notes.push_back(is_rough ? hints::shortened(note) : hints::no_short);
        if (!is_rough) std::memcpy(&whole.emplace_back(), &note, sizeof note);
    }
};

// From which ticket on the notes of all are those that the hint would give now: mostly those issued
// since the last outcome. A hint that Python provides is not asked.
std::int64_t same_since(const Desk& desk) {
    const HintHolder& held = desk.held();
    if (held.hint->notes() == 0) return 0;
    if (held.hint->runs_python()) return desk.issued;
    const HintHolder hint = held.copy();
    std::vector<double> now(held.hint->notes());
    std::int64_t since = desk.issued;
    for (auto ticket = desk.tickets.rbegin(); ticket != desk.tickets.rend(); ++ticket) {
        const std::vector<double>& kept = ticket->second.kept;
        hint.hint->issue(again(hint, kept.data()).data(), now.data());
        hint.hint->shorten(now.data());
        if (!std::equal(now.rbegin(), now.rend(), kept.rbegin())) break;
        since = ticket->first;
    }
    return since;
}

nb::dict table(Desk& desk) {
    const auto models = static_cast<std::ptrdiff_t>(at_rest(desk.held()).hint->inputs());
    const std::int64_t since = same_since(desk);
    Table table;
    for (const auto& [number, ticket] : desk.tickets) {
        table.number.push_back(number);
        table.key.push_back(ticket.made.key);
        table.worst.push_back(ticket.made.worst);
        table.event.push_back(ticket.event);
        const Members& of = ticket.groups();
        table.members.push_back(static_cast<std::int64_t>(of.size()) - 1);
        table.group.insert(table.group.end(), of.begin() + 1, of.end());
        const auto notes = ticket.kept.begin() + models;
        table.score.insert(table.score.end(), ticket.kept.begin(), notes);
        table.forecast.push_back(ticket.made.said);
        if (of.size() > 1)
            for (const double p : aim_of(ticket.made)) table.aim.push_back(hints::shortened(p));
        table.same.push_back(number >= since);
        if (number < since)
            std::for_each(notes, ticket.kept.end(), [&](double note) { table.write(note); });
    }
    for (const auto& [event, count] : desk.events.all()) {
        table.about.push_back(event);
        table.made.push_back(count.made);
    }
    return saved(table.entries());
}

// Reads a table from the first ticket to the last.
class Reader {
    const Desk& desk;
    const Table& table;
    std::size_t row = 0, member = 0, note = 0, whole = 0, aim = 0;  // those that come next

    // The next of a column, which must have one.
    template <typename T>
    static T next(const std::vector<T>& column, std::size_t& at) {
        require(at < column.size(), "tickets must have as many groups and notes as they say");
        return column[at++];
    }

    double next_note() {
        const std::uint16_t brief = next(table.notes, note);
        if (brief != hints::no_short) return hints::lengthened(brief);
        const std::int64_t bits = next(table.whole, whole);
        double found;
        std::memcpy(&found, &bits, sizeof found);
        return found;
    }

  public:
    Reader(const Desk& of, const Table& from) : desk(of), table(from) {}

    Awaited ticket() {
        const HintHolder& held = desk.held();
        const std::size_t models = held.hint->inputs(), each = held.hint->notes();
        const Scores scores = again(held, table.score.data() + row * models);
        Members of =
            members_from(table.group, member, table.members[row], desk.guard.group_count());
        std::array<double, aim_size> from_hint{};
        if (of.size() > 1)
            for (double& p : from_hint) p = hints::lengthened(next(table.aim, aim));
        const Placed made =
            placed(table.forecast[row], table.key[row], table.worst[row], from_hint.data());
        if (of.size() == 1) of = {};
        Awaited found{std::move(of), made, table.event[row], given(scores, each)};
        double* notes = found.kept.data() + models;
        if (table.same[row] == 0) {
            std::generate(notes, notes + each, [&] { return next_note(); });
        } else if (each != 0) {
            held.hint->issue(scores.data(), notes);
            held.hint->shorten(notes);
        }
        ++row;
        return found;
    }

    bool at_end() const {
        return member == table.group.size() && note == table.notes.size() &&
               whole == table.whole.size() && aim == table.aim.size();
    }
};

// Take over what `table` gave.
void restore(Desk& desk, std::int64_t issued, const nb::dict& columns) {
    Table table;
    load(table.entries(), columns);
    const std::size_t count = table.number.size();
    const std::size_t models = at_rest(unread(desk).held()).hint->inputs();
    require(all_of_length(count, table.key, table.worst, table.event, table.members, table.forecast,
                          table.same) &&
                table.score.size() == count * models && table.about.size() == table.made.size(),
            "columns must be of one length");
    Tickets tickets;
    Events events;
    for (std::size_t k = 0; k < table.about.size(); ++k) events.load(table.about[k], table.made[k]);
    Reader reader(desk, table);
    for (const std::int64_t number : table.number) {
        const auto ticket = tickets.emplace_hint(tickets.end(), number, reader.ticket());
        events.load_awaited(ticket->second.event);
    }
    require(reader.at_end(), "tickets must have as many groups and notes as they say");
    require(tickets.size() == count, "tickets must have numbers of their own");
    desk.tickets = std::move(tickets);
    desk.events = std::move(events);
    desk.issued = issued;
}

// The names of groups, in the order of their numbers.
void seat(Desk& desk, const nb::list& names, const nb::dict& numbers) {
    require(unread(desk).seats.named == 0 && desk.tickets.empty(),
            "only a new desk can be furnished");
    load(desk.guard, numbers);
    require(desk.guard.groups.size() == names.size() + Seats::first,
            "there must be a name for each group");
    desk.seats.load(names);
}

void ask(Desk& desk, Array<const double, 1> scores) {
    require(scores.shape(0) == unread(desk).held().hint->inputs() && desk.guard.issued,
            "no outcome is awaited");
    desk.asked = given(again(desk.held(), scores.data()));
}

bool set_bursts(DeskBase& desk, const nb::dict& numbers) {
    hints::Bursts read;
    load(read.entries(), numbers);
    if (!in_range(read.entries()) || !read.settle()) return false;
    unread(desk).bursts = read;
    return true;
}

}  // namespace

void bind_recalibrate(nb::module_& m) {
    m.attr("TICKETS") = described(Table().entries());
    m.attr("BURSTS") = described(hints::Bursts().entries());
    nb::class_<DeskBase>(m, "DeskBase")
        .def("alone", &alone<DeskBase>, "read"_a, "Call this while calls of other threads wait.")
        .def(
            "number_of",
            [](const DeskBase& d, nb::handle group) { return d.seats.number_of(group); },
            "group"_a.none(), "The number of a group, or KeyError.")
        .def(
            "bursts", [](DeskBase& d) { return saved(d.bursts.entries()); },
            "What is known of outcomes that come together.")
        .def("set_bursts", &set_bursts, "numbers"_a,
             "Take over what `bursts` gave, if the numbers fit together.")
        .def_prop_ro(
            "names", [](const DeskBase& d) { return d.seats.listed(); }, "The groups, in order.")
        .def_prop_ro(
            "groups", [](const DeskBase& d) { return d.seats.named; }, "How many groups there are.")
        .def_ro("issued", &DeskBase::issued, "How many tickets there were so far.");
    nb::class_<Desk, DeskBase>(m, "Desk")
        .def(
            "__init__",
            [](Desk* self, nb::handle hint, double budget, bool nudges, nb::type_object ticket_type,
               std::size_t most_groups, std::size_t most_tickets) {
                require(nb::isinstance<HintHolder>(hint), "a desk needs a hint");
                new (self) Desk(nb::borrow(hint), budget, nudges, std::move(ticket_type),
                                most_groups, most_tickets);
            },
            "hint"_a, "budget"_a, "nudges"_a, "ticket_type"_a, "most_groups"_a, "most_tickets"_a)
        .def("predict", &predict, "score"_a.none(), "group"_a.none(),
             "What to say where the model says this score.")
        .def("observe", &observe, "outcome"_a.none(),
             "Learn the outcome that the last `predict` was about.")
        .def("issue", &issue, "score"_a.none(), "group"_a.none(), "event"_a.none(),
             "The ticket of a forecast whose outcome comes later.")
        .def("resolve", &resolve, "ticket"_a.none(), "outcome"_a.none(),
             "Learn the outcome of a ticket.")
        .def("give_up", &give_up<Desk>, "ticket"_a.none(),
             "Await the outcome of a ticket no longer.")
        .def("run", &run, "scores"_a, "groups"_a.none(), "outcomes"_a, "said"_a, "threads"_a,
             "Play a round for every outcome; write what was said. All or, if it is interrupted, "
             "nothing.")
        .def("replay", &replay, "scores"_a, "groups"_a.none(), "outcomes"_a, "known_at"_a,
             "events"_a, "said"_a,
             "Issue every round and resolve it once it is known; write what was said. All or "
             "nothing.")
        .def("steps", &steps, "scores"_a, "groups"_a.none(), "events"_a, "tickets"_a, "outcomes"_a,
             "order"_a, "said"_a,
             "Issue and resolve, in the order of the steps; write what was said. All or nothing.")
        .def("place", &place, "scores"_a, "groups"_a.none(), "said"_a, "pieces"_a,
             "Write what would be said of each score if it came next.")
        .def("table", &table, "The tickets, column by column.")
        .def("restore", &restore, "issued"_a, "columns"_a, "Take over what `table` gave.")
        .def("seat", &seat, "names"_a, "numbers"_a,
             "Give a new desk its groups, and the guard its numbers.")
        .def("ask", &ask, "scores"_a, "Have `observe` learn of these scores.")
        .def(
            "take",
            [](Desk& d, Desk& other) {
                at_rest(unread(d).held());
                take(d, other);
            },
            "other"_a, "Take over everything that rounds change.")
        .def(
            "parts", [](const Desk& d, std::size_t number) { return group_parts(d.guard, number); },
            "number"_a,
            "What the certificate of a group is made of; 0 is everyone, 1 are all others.")
        .def(
            "saved", [](Desk& d) { return saved(d.guard); },
            "All numbers of the guard, most in columns.")
        .def_ro("hint", &Desk::hint, "What makes something of the scores.")
        .def_prop_ro(
            "asked",
            [](const Desk& d) { return copy(d.guard.issued ? d.asked : std::vector<double>()); },
            "The scores that `observe` will learn of, if it may be called.")
        .def_prop_ro(
            "rounds", [](Desk& d) { return unread(d).guard.everyone().rounds; },
            "Outcomes learned so far.")
        .def_prop_ro("awaited", &awaited<Desk>,
                     "The tickets whose outcomes are awaited, oldest first.")
        .def_prop_ro(
            "unresolved", [](Desk& d) { return unread(d).tickets.size(); },
            "How many tickets await their outcomes.");
}

}  // namespace truecast
