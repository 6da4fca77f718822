// SPDX-License-Identifier: BSD-3-Clause
// The exceptions of set-up. The C interface turns them into codes and log lines.
#pragma once

#include <stdexcept>
#include <string>

namespace hier {

class SetupError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

// A failure whose cause is in the log already, by this rank or by another one.
class KnownFailure : public SetupError {
public:
    using SetupError::SetupError;
};

// A message of set-up itself has failed. The ranks may be at different steps of set-up, so no other
// exchange can follow.
class ExchangeFailure : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

__attribute__((format(printf, 1, 2))) std::string format(const char* text, ...);

}  // namespace hier
