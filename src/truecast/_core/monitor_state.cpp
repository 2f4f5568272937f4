// What a monitor saves, and takes over again.
#include <nanobind/nanobind.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "saving.hpp"
#include "watch.hpp"

namespace truecast::monitor {

nb::list names_of(Watch& watch) {
    nb::list all;
    for (std::size_t k = 0; k < at_rest(watch).names.size(); ++k) all.append(watch.names[k]);
    return all;
}

namespace {

// The columns of a table of tickets.
struct Tickets {
    std::vector<std::int64_t> number, event, members;
    std::vector<std::uint8_t> bet, open, came;
    std::vector<std::int64_t> chain, group;
    std::vector<double> p, row;
    std::vector<std::int64_t> label;

    Entries entries() {
        return {{"number", number, 0, most_rounds, "of the forecast, increasing"},
                {"p", p, 0, 1, "the forecast"},
                {"event", event, 0, 0x1p63, "a hash of its event; 0 if it has none"},
                {"bet", bet, 0, 1, "1 if it is bet on"},
                {"open", open, 0, 1, "1 if its outcome is awaited"},
                {"came", came, 0, 2, "its outcome; 2 if that is not known"},
                {"chain", chain, 0, 0x1p20, "the chain that it is bet on in"},
                {"members", members, 1, 0x1p20, "how many accounts it is of"},
                {"group", group, 0, 0x1p20, "these accounts, one ticket after the other"},
                {"row", row, 0, 1, "of classes: the forecasts, one ticket after the other"},
                {"label", label, 0, 0x1p20, "of classes: the one that came; 0 if it is awaited"}};
    }

    bool are_even(std::size_t classes) const {
        const std::size_t count = number.size();
        return all_of_length(count, p, event, bet, open, came, chain, members, label) &&
               row.size() == count * classes;
    }

    // The ticket at a place, still without its groups.
    Pending at(std::size_t k, std::size_t chains, std::size_t classes) const {
        require(p[k] >= 0.0 && p[k] <= 1.0 && came[k] <= 2 && event[k] >= 0,
                "a ticket must have a forecast");
        require(chain[k] >= 0 && static_cast<std::size_t>(chain[k]) < chains,
                "there is no such chain");
        require(label[k] >= 0 && static_cast<std::size_t>(label[k]) <= classes,
                "there is no such class");
        Pending ticket;
        ticket.p = p[k];
        ticket.event = event[k];
        ticket.bet = bet[k] != 0;
        ticket.open = open[k] != 0;
        ticket.came = static_cast<Came>(came[k]);
        ticket.chain = static_cast<std::uint32_t>(chain[k]);
        ticket.label = static_cast<std::size_t>(label[k]);
        const double* const from = row.data() + k * classes;
        ticket.row.assign(from, from + classes);
        require(std::all_of(ticket.row.begin(), ticket.row.end(),
                            [](double q) { return q >= 0.0 && q <= 1.0; }),
                "a ticket must have a forecast of each class");
        return ticket;
    }

    // The accounts of a ticket, the next `count` of them all: everyone's, then others in order.
    Members accounts(std::size_t& next, std::int64_t count, std::size_t most) const {
        require(count >= 1 && static_cast<std::size_t>(count) <= group.size() - next,
                "members must fit the groups");
        Members of;
        for (std::int64_t g = 0; g < count; ++g, ++next) {
            require(group[next] >= 0 && static_cast<std::size_t>(group[next]) < most &&
                        (g == 0 ? group[next] == 0 : group[next] > group[next - 1]),
                    "there is no such group");
            of.push_back(static_cast<std::uint32_t>(group[next]));
        }
        return of;
    }
};

nb::dict saved_late(Watch& watch) {
    Late& late = watch.desk.late;
    Tickets all;
    for (const auto& [number, ticket] : late.tickets) {
        all.number.push_back(number);
        all.p.push_back(ticket.p);
        all.event.push_back(ticket.event);
        all.bet.push_back(ticket.bet ? 1 : 0);
        all.open.push_back(ticket.open ? 1 : 0);
        all.came.push_back(static_cast<std::uint8_t>(ticket.came));
        all.chain.push_back(ticket.chain);
        all.members.push_back(static_cast<std::int64_t>(ticket.of.size()));
        all.group.insert(all.group.end(), ticket.of.begin(), ticket.of.end());
        all.row.insert(all.row.end(), ticket.row.begin(), ticket.row.end());
        all.label.push_back(static_cast<std::int64_t>(ticket.label));
    }
    nb::dict state;
    state["passed_over"] = late.passed_over;
    state["given_up"] = late.given_up;
    state["lags"] = copy(late.lags.data(), late.lags.size()).attr("tolist")();
    state["table"] = saved(all.entries());
    return state;
}

}  // namespace

nb::dict saved_watch(Watch& watch) {
    Book& book = at_rest(watch).desk.book;
    nb::list chains;
    for (Chain& chain : book.chains) {
        nb::list accounts;
        for (Account& account : chain.accounts) accounts.append(saved(account.entries()));
        nb::dict one;
        one["rounds"] = chain.rounds;
        one["accounts"] = accounts;
        chains.append(one);
    }
    nb::dict state;
    state["book"] = saved(book.entries());
    state["chains"] = chains;
    state["late"] = saved_late(watch);
    state["groups"] = names_of(watch);
    return state;
}

namespace {

void load_late(Desk& desk, const nb::dict& state, std::size_t accounts, std::size_t classes) {
    Tickets all;
    load(all.entries(), nb::cast<nb::dict>(state["table"]));
    Late& late = desk.late;
    late.passed_over = nb::cast<std::int64_t>(state["passed_over"]);
    late.given_up = nb::cast<std::int64_t>(state["given_up"]);
    const auto lags = nb::cast<std::vector<double>>(state["lags"]);
    require(lags.size() == late.lags.size(), "there must be three numbers of lags each");
    std::copy(lags.begin(), lags.end(), late.lags.begin());
    require(all.are_even(classes), "columns must be of one length");
    std::size_t next = 0;
    std::int64_t before = -1;
    for (std::size_t k = 0; k < all.number.size(); ++k) {
        require(all.number[k] > before && all.number[k] < desk.book.clock,
                "tickets must be in order");
        before = all.number[k];
        Pending ticket = all.at(k, desk.book.chains.size(), classes);
        ticket.of = all.accounts(next, all.members[k], accounts);
        if (ticket.open) {
            ++late.awaited;
            if (ticket.event != 0) ++late.events[ticket.event];
        }
        if (desk.order == Order::chains && ticket.bet && ticket.open) {
            require(!late.taken[ticket.chain], "a chain awaits one outcome");
            late.taken[ticket.chain] = true;
        }
        require(ticket.open || (desk.order == Order::issue && k > 0),
                "a resolved forecast waits only behind one that is not");
        late.tickets.emplace(before, std::move(ticket));
    }
    require(next == all.group.size() && static_cast<std::size_t>(late.awaited) <= desk.most_awaited,
            "tickets must be at most as many as are awaited");
}

void load_chain(Chain& chain, const nb::dict& state, const Book& book) {
    chain.rounds = nb::cast<std::int64_t>(state["rounds"]);
    require(chain.rounds >= 0 && static_cast<double>(chain.rounds) <= most_rounds,
            "rounds must be in their range");
    const auto accounts = nb::cast<nb::list>(state["accounts"]);
    require(nb::len(accounts) == chain.accounts.size(), "each group needs an account");
    for (std::size_t g = 0; g < chain.accounts.size(); ++g) {
        Account& account = chain.accounts[g];
        load(account.entries(), nb::cast<nb::dict>(accounts[g]));
        require(in_range(account.entries()), "numbers must be in their ranges");
        account.settle();
        require(account.rounds <= chain.rounds && account.clock <= book.clock,
                "an account must have no more rounds than everyone");
    }
    require(chain.accounts[0].rounds == chain.rounds, "everyone must have all rounds");
}

}  // namespace

void load_watch(Watch& watch, const nb::list& names, const nb::dict& state) {
    at_rest(watch);
    const Desk& now = watch.desk;
    Watch read(now.book.level, now.book.limit, static_cast<int>(now.order), now.book.chains.size(),
               watch.most_groups, now.most_awaited, watch.classes());
    for (nb::handle name : names) read.number(name);
    require(read.names.size() == nb::len(names), "groups must be distinct, and not too many");
    Book& book = read.desk.book;
    load(book.entries(), nb::cast<nb::dict>(state["book"]));
    require(in_range(book.entries()), "numbers must be in their ranges");
    const auto chains = nb::cast<nb::list>(state["chains"]);
    require(nb::len(chains) == book.chains.size(), "there must be as many chains");
    std::int64_t rounds = 0;
    for (std::size_t k = 0; k < book.chains.size(); ++k) {
        load_chain(book.chains[k], nb::cast<nb::dict>(chains[k]), book);
        rounds += book.chains[k].rounds;
    }
    const std::int64_t bets_a_round = 1 + static_cast<std::int64_t>(watch.classes());
    require(rounds == book.rounds * bets_a_round && book.known <= book.rounds &&
                book.rounds <= book.clock,
            "rounds must add up");
    load_late(read.desk, nb::cast<nb::dict>(state["late"]), book.chains[0].accounts.size(),
              watch.classes());
    watch.desk = std::move(read.desk);
    watch.names = std::move(read.names);
}

nb::dict described_watch() {
    Book book(true, 1.0, 1);
    Account account;
    Tickets tickets;
    nb::dict all;
    all["book"] = described(book.entries());
    all["accounts"] = described(account.entries());
    all["tickets"] = described(tickets.entries());
    return all;
}

}  // namespace truecast::monitor
