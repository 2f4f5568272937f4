// Forecasts of events that have a number: how many there were of each, and how many await their
// outcome. An event is forgotten once none does.
#pragma once

#include <cstdint>
#include <map>

namespace truecast {

class Events {
  public:
    static constexpr std::int64_t none = 0;

    struct Event {
        std::int64_t made = 0, open = 0;
        std::int64_t since = 0;  // the number of the ticket that it came with
    };
    using Table = std::map<std::int64_t, Event>;

    const Table& all() const { return table; }

    // Make it if it is new: `issued` then cannot fail. `number` is that of the ticket.
    void prepare(std::int64_t event, std::int64_t number) {
        if (event != none) at(event, number);
    }
    void issued(std::int64_t event, std::int64_t number) {
        if (event == none) return;
        Event& found = at(event, number);
        ++found.made;
        ++found.open;
    }
    void closed(std::int64_t event) {
        const auto found = table.find(event);
        if (event == none || found == table.end()) return;
        note(event, found->second);
        if (--found->second.open == 0) table.erase(found);
    }

    // How many forecasts there were of it; 0 if it has no number.
    std::int64_t mates(std::int64_t event) const {
        const auto found = table.find(event);
        return event == none || found == table.end() ? 0 : found->second.made;
    }

    // As they were saved: how many forecasts there were, and that one of them is awaited.
    void load(std::int64_t event, std::int64_t made) { table[event].made = made; }
    void load_awaited(std::int64_t event) {
        if (event != none) ++table[event].open;
    }

    // What a batch changes, to go back to. What comes with the batch need not come back.
    class Undo {
        Events& events;
        const std::int64_t since;
        Table before;

      public:
        // `number`: of the first ticket that the batch may issue.
        Undo(Events& of, std::int64_t number) : events(of), since(number) {
            events.changed = &before;
            events.changed_since = since;
        }
        Undo(const Undo&) = delete;
        Undo& operator=(const Undo&) = delete;
        ~Undo() { events.changed = nullptr; }

        void restore() {
            for (auto each = events.table.begin(); each != events.table.end();)
                each = each->second.since >= since ? events.table.erase(each) : std::next(each);
            for (const auto& [event, was] : before) events.table[event] = was;
        }
    };

  private:
    Event& at(std::int64_t event, std::int64_t number) {
        Event& found = table.try_emplace(event, Event{0, 0, number}).first->second;
        note(event, found);
        return found;
    }

    // Before it changes.
    void note(std::int64_t event, const Event& before) {
        if (changed != nullptr && before.since < changed_since) changed->emplace(event, before);
    }

    Table table;
    Table* changed = nullptr;  // where a batch that may have to be undone keeps what was before
    std::int64_t changed_since = 0;
};

}  // namespace truecast
