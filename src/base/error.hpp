// SPDX-License-Identifier: BSD-3-Clause
// Set-up throws this; the C interface turns it into a code and a log line.
#pragma once

#include <stdexcept>
#include <string>

namespace hier {

class SetupError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

// Whose cause has been told: by another rank, or before.
class KnownFailure : public SetupError {
public:
    using SetupError::SetupError;
};

// Of set-up's own messages: the ranks are at different steps of it, and no other exchange can follow.
class ExchangeFailure : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

__attribute__((format(printf, 1, 2))) std::string format(const char* text, ...);

}  // namespace hier
