// Rows of delimited text without quotes: the numbers in some of their columns, and rows with more
// fields at their ends.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <system_error>

namespace truecast {

// Text from `at` to `end`.
struct Text {
    const char* at;
    const char* end;
};

inline bool digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }

// The value of a whole field of digits, with or without decimals or an exponent; false for all
// else. Rounded correctly, as any good reader of numbers does.
inline bool precise_number(Text field, double& value) {
#ifdef __cpp_lib_to_chars
    const auto [stop, error] = std::from_chars(field.at, field.end, value);
    return error == std::errc() && stop == field.end;
#else
    (void)field, (void)value;
    return false;  // an older library: the caller has another reader
#endif
}

constexpr double tens[] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                           1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
constexpr std::ptrdiff_t few_digits = 15;  // their number is below 2^53

// The same. Few digits are an integer over a power of ten, both exact, so that the quotient is
// rounded once. The first must be a digit: no signs, no words.
inline bool plain_number(Text field, double& value) {
    const char* at = field.at;
    std::uint64_t digits = 0;
    for (; at < field.end && digit(*at); ++at)
        digits = 10 * digits + static_cast<std::uint64_t>(*at - '0');
    const std::ptrdiff_t before = at - field.at;
    if (before == 0) return false;
    std::ptrdiff_t decimals = 0;
    if (at < field.end && *at == '.') {
        const char* first = ++at;
        for (; at < field.end && digit(*at); ++at)
            digits = 10 * digits + static_cast<std::uint64_t>(*at - '0');
        decimals = at - first;
        if (decimals == 0) return false;
    }
    if (at < field.end || before + decimals > few_digits) return precise_number(field, value);
    value = static_cast<double>(digits) / tens[decimals];
    return true;
}

// The end of the first line of a text that is not empty, without its line end; `next` is after it.
inline const char* line_end(Text text, const char*& next) {
    const auto size = static_cast<std::size_t>(text.end - text.at);
    const void* found = std::memchr(text.at, '\n', size);
    const char* end = found == nullptr ? text.end : static_cast<const char*>(found);
    next = found == nullptr ? end : end + 1;
    return found != nullptr && end > text.at && end[-1] == '\r' ? end - 1 : end;
}

// The numbers in `columns` of a text, which increase, those of column k from numbers + k room on.
// Returns how many rows there are; -1 if one has not as many fields as it must, a cell in these
// columns is no plain number, or there are more than `room`.
inline std::ptrdiff_t read_numbers(Text text, char separator, std::size_t fields,
                                   const std::int64_t* columns, std::size_t count, double* numbers,
                                   std::size_t room) {
    std::size_t row = 0;
    // before each row: all rows above are read, and text.at is the first letter of this one
    for (const char* next; text.at < text.end; text.at = next, ++row) {
        if (row == room) return -1;
        const char* end = line_end(text, next);
        const char* at = text.at;
        std::size_t read = 0;
        for (std::size_t field = 0; field < fields; ++field) {
            const char* start = at;
            while (at < end && *at != separator) ++at;
            if ((at == end) != (field + 1 == fields)) return -1;
            if (read < count && static_cast<std::size_t>(columns[read]) == field) {
                if (!plain_number({start, at}, numbers[read * room + row])) return -1;
                ++read;
            }
            ++at;
        }
    }
    return static_cast<std::ptrdiff_t>(row);
}

// Each line of a text, a separator, and the line of `more` that belongs to it. Returns how many
// bytes that is, at most two more than both have; -1 if they have not the same number of lines.
inline std::ptrdiff_t join_lines(Text text, Text more, char separator, char* joined) {
    char* to = joined;
    const auto copy = [&to](const char* from, const char* end) {
        std::memcpy(to, from, static_cast<std::size_t>(end - from));
        to += end - from;
    };
    const char* next;
    while (text.at < text.end && more.at < more.end) {
        copy(text.at, line_end(text, next));
        text.at = next;
        *to++ = separator;
        copy(more.at, line_end(more, next));
        more.at = next;
        *to++ = '\n';
    }
    return text.at == text.end && more.at == more.end ? to - joined : -1;
}

}  // namespace truecast
