// Forecasts whose outcomes come later, and the order in which they are bet on (docs/monitor.md,
// section 5).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "monitor.hpp"

namespace truecast::monitor {

enum class Order : std::uint8_t { issue = 0, resolution = 1, chains = 2 };

struct Pending {
    double p = 0.0;
    Members of = everyone;
    std::vector<double> row;  // of classes, in place of p
    std::size_t label = 0;    // the class that came
    std::int64_t event = 0;   // 0 for none
    bool bet = true;          // whether it is bet on at all
    bool open = true;         // whether its outcome is awaited
    std::uint32_t chain = 0;
    Came came = Came::never;  // of classes: whether the likeliest one came
};

// How late outcomes came, zeros first, then ones: how many, the sum of their lags, and of squares.
using Lags = std::array<double, 6>;

struct Late {
    // By number, so oldest first. In the order of issue those that are resolved wait for older
    // ones.
    std::map<std::int64_t, Pending> tickets;
    std::map<std::int64_t, std::int64_t> events;  // awaited forecasts of each
    std::vector<bool> taken;                      // chains that await an outcome
    std::int64_t awaited = 0;
    std::int64_t passed_over = 0;  // forecasts that are not bet on
    std::int64_t given_up = 0;
    Lags lags{};
    // Where to write what tickets were before a batch, if it may have to be undone; and the number
    // of the first ticket that is new.
    std::map<std::int64_t, Pending>* changed = nullptr;
    std::int64_t first_new = 0;

    void note(std::int64_t number, const Pending& ticket) {
        if (changed != nullptr && number < first_new) changed->emplace(number, ticket);
    }

    std::optional<std::uint32_t> free_chain() const {
        for (std::size_t k = 0; k < taken.size(); ++k)
            if (!taken[k]) return static_cast<std::uint32_t>(k);
        return std::nullopt;
    }
};

// A book, and the forecasts that it waits for.
struct Desk {
    Order order;
    std::size_t most_awaited;
    Book book;
    Late late;

    Desk(bool level, double limit, Order order_, std::size_t chains, std::size_t most,
         bool of_classes)
        : order(order_), most_awaited(most), book(level, limit, chains, of_classes) {
        late.taken.assign(chains, false);
    }

    std::int64_t issue(double p, Members of, std::int64_t event) {
        Pending made;
        made.p = p;
        made.of = std::move(of);
        made.event = event;
        return issue(std::move(made));
    }

    std::int64_t issue(const double* row) {
        Pending made;
        made.row.assign(row, row + book.chains.size() - 1);
        return issue(std::move(made));
    }

    bool awaits(std::int64_t number) const {
        const auto found = late.tickets.find(number);
        return found != late.tickets.end() && found->second.open;
    }

    // The class that came of an awaited row.
    void close_row(std::int64_t number, std::size_t label) {
        Pending& ticket = late.tickets.find(number)->second;
        late.note(number, ticket);
        ticket.label = label;
        close(number, came_of(ticket.row.data(), label));
    }

    // A row whose outcome is known before the next one is said.
    void at_once(const double* row, std::size_t label) {
        if (late.tickets.empty())
            book.settle(row, label, book.clock++, came_of(row, label));
        else
            close_row(issue(row), label);
    }

    // The outcome of an awaited forecast; nothing if it is given up and left out.
    void close(std::int64_t number, std::optional<Came> came) {
        const auto found = late.tickets.find(number);
        Pending& ticket = found->second;
        late.note(number, ticket);
        ticket.open = false;
        --late.awaited;
        if (ticket.event != 0) {
            const auto event = late.events.find(ticket.event);
            if (--event->second == 0) late.events.erase(event);
        }
        if (!came || *came == Came::never)
            ++late.given_up;
        else
            note_lag(static_cast<double>(book.clock - number), *came == Came::one ? 3 : 0);
        if (order == Order::chains && ticket.bet) late.taken[ticket.chain] = false;
        if (ticket.bet && !came) ++late.passed_over;
        ticket.bet = ticket.bet && came;
        ticket.came = came.value_or(Came::never);
        if (order != Order::issue) {
            settle(number, ticket);
            late.tickets.erase(found);
            return;
        }
        while (!late.tickets.empty() && !late.tickets.begin()->second.open) {
            const auto& [first, waited] = *late.tickets.begin();
            late.note(first, waited);
            settle(first, waited);
            late.tickets.erase(late.tickets.begin());
        }
    }

    // A forecast whose outcome is known before the next one is made.
    void at_once(double p, const Members& of, bool one) {
        const Came came = one ? Came::one : Came::zero;
        if (late.tickets.empty())
            book.settle(p, of, 0, book.clock++, came);
        else
            close(issue(p, of, 0), came);
    }

    std::int64_t oldest() const {
        for (const auto& [number, ticket] : late.tickets)
            if (ticket.open) return number;
        return -1;
    }

  private:
    std::int64_t issue(Pending made) {
        if (static_cast<std::size_t>(late.awaited) >= most_awaited) close(oldest(), Came::never);
        if (order == Order::chains) {
            const auto free = late.free_chain();
            made.bet = free.has_value();
            made.chain = free.value_or(0);
        } else if (made.event != 0) {
            made.bet = late.events.count(made.event) == 0;  // one event, one factor
        }
        const std::int64_t number = book.clock;
        if (made.event != 0) ++late.events[made.event];
        const Pending& kept = late.tickets.emplace(number, std::move(made)).first->second;
        if (order == Order::chains && kept.bet) late.taken[kept.chain] = true;
        if (!kept.bet) ++late.passed_over;
        ++late.awaited;
        ++book.clock;
        return number;
    }

    Came came_of(const double* row, std::size_t label) const {
        const double* end = row + book.chains.size() - 1;
        return std::max_element(row, end) == row + label ? Came::one : Came::zero;
    }

    void note_lag(double lag, std::size_t at) {
        late.lags[at] += 1.0;
        late.lags[at + 1] += lag;
        late.lags[at + 2] += lag * lag;
    }

    void settle(std::int64_t number, const Pending& ticket) {
        if (!ticket.bet) return;
        if (ticket.row.empty())
            book.settle(ticket.p, ticket.of, ticket.chain, number, ticket.came);
        else
            book.settle(ticket.row.data(), ticket.label, number, ticket.came);
    }
};

}  // namespace truecast::monitor
