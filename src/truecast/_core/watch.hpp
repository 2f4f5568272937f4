// A monitor's desk with the names of its groups: what monitor.cpp binds and monitor_state.cpp
// saves.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "arrays.hpp"
#include "edge.hpp"
#include "late.hpp"
#include "names.hpp"

namespace truecast::monitor {

namespace nb = nanobind;

struct Watch {
    Desk desk;
    std::size_t most_groups;
    Names names;  // of accounts from `first` on; 0 is everyone, 1 all others beyond `most_groups`
    bool busy = false;

    static constexpr std::uint32_t others = 1, first = 2;

    Watch(bool level, double limit, int order, std::size_t chains, std::size_t groups,
          std::size_t awaited, std::size_t classes)
        : desk(level, limit, static_cast<Order>(order), classes > 0 ? 1 + classes : chains, awaited,
               classes > 0),
          most_groups(groups) {
        require(order >= 0 && order <= 2 && chains >= 1 && (classes == 0 || order < 2),
                "there is no such order");
        desk.book.make_room(first);
    }

    std::size_t classes() const { return desk.book.of_classes ? desk.book.chains.size() - 1 : 0; }

    std::uint32_t number(nb::handle name) {
        const Names::Mark mark(name);
        const std::uint32_t found = names.find(name, mark);
        if (found != Names::unknown) return first + found;
        if (names.size() >= most_groups) return others;
        desk.book.make_room(first + names.size() + 1);
        names.add(name, mark);
        return static_cast<std::uint32_t>(first + names.size() - 1);
    }

    Members members(nb::handle group) {
        if (group.is_none()) return {0};
        if (!PyTuple_CheckExact(group.ptr())) return {0, number(group)};
        Members all{0};
        for (nb::handle name : nb::borrow<nb::tuple>(group)) all.push_back(number(name));
        std::sort(all.begin(), all.end());
        all.erase(std::unique(all.begin(), all.end()), all.end());
        return all;
    }

    void forget(std::size_t names_before) {
        while (names.size() > names_before) names.drop_last();
        for (Chain& chain : desk.book.chains) chain.accounts.resize(first + names.size());
    }
};

nb::list names_of(Watch& watch);
nb::dict saved_watch(Watch& watch);
void load_watch(Watch& watch, const nb::list& names, const nb::dict& state);
nb::dict described_watch();

}  // namespace truecast::monitor
