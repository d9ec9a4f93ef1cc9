/// What can go wrong, by who can mend it: the user (exit code 2) or us (exit code 3).
#pragma once

#include <stdexcept>

namespace replicate
{

/// Bad input or an unsupported feature; the message names the field, the value and the remedy.
struct InputError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// A law that every run must obey was broken: a defect of this program.
struct InvariantError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

} // namespace replicate
