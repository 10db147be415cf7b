// SPDX-License-Identifier: Apache-2.0
//
// The caller's source line, which C programs pass with macros. C++17 has no
// std::source_location, but GCC and Clang evaluate two builtins at the place of the call if they
// are default arguments.
#ifndef CATENA_CPP_SOURCE_HPP
#define CATENA_CPP_SOURCE_HPP

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace catena
{
namespace detail
{

// "file:line" of a pair that this thread has not seen. Plans keep these texts, so they are never
// freed; there are as many as the program has lines that call ops.
inline const char *new_line_text(const char *file, int line)
{
    static std::mutex mutex;
    static auto *texts = new std::map<std::pair<const char *, int>, std::string>;
    const std::lock_guard<std::mutex> lock(mutex);
    std::string &text = (*texts)[{file, line}];
    if (text.empty()) text = std::string(file) + ":" + std::to_string(line);
    return text.c_str();
}

// The same through a small table of this thread, which costs a few instructions.
inline const char *line_text(const char *file, int line)
{
    struct Entry {
        const char *file;
        int line;
        const char *text;
    };
    static thread_local Entry table[256];
    const auto place = reinterpret_cast<std::uintptr_t>(file) / 8 + static_cast<unsigned>(line);
    Entry &entry = table[place % 256];
    if (entry.file != file || entry.line != line) entry = {file, line, new_line_text(file, line)};
    return entry.text;
}

} // namespace detail

// The last argument of every function that records something. Leave it out.
class Where
{
public:
    static constexpr Where here(const char *file = __builtin_FILE(), int line = __builtin_LINE())
    {
        return Where(file, line);
    }
    const char *text() const
    {
        return detail::line_text(file_, line_);
    }

private:
    constexpr Where(const char *file, int line) : file_(file), line_(line)
    {
    }
    const char *file_;
    int line_;
};

} // namespace catena
#endif
