#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# coverage.sh BUILD: prints the share of the lines of src/ that the tests in this build tree have run, and the ten files with
# the smallest shares. Fails below 90 %. Needs a build with --coverage and lcov.
set -euo pipefail

least=90
build=${1:?usage: coverage.sh BUILD}
source=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
all=$build/coverage.all found=$build/coverage.info
lcov --quiet --capture --directory "$build" --base-directory "$build" --output-file "$all"
lcov --quiet --extract "$all" "$source/src/*" --output-file "$found"
# One line for each file: percent, lines that ran, lines, name.
awk -F '[:,]' -v root="$source/" '
    $1 == "SF" { name = substr($2, length(root) + 1); lines = hit = 0 }
    $1 == "DA" { lines++; hit += $3 > 0 }
    $1 == "end_of_record" && lines > 0 { printf "%.1f %d %d %s\n", 100 * hit / lines, hit, lines, name }
' "$found" | sort -n >"$build/coverage.files"
echo "The least covered files of src/, in percent of their lines:"
head -n 10 "$build/coverage.files" | awk '{ printf "    %5.1f %%  %4d of %4d  %s\n", $1, $2, $3, $4 }'
awk -v least="$least" '
    { hit += $2; lines += $3 }
    END {
        if (lines == 0) { print "no lines of src/ were counted"; exit 1 }
        printf "Line coverage of src/: %.1f %% of %d lines (at least %d %%)\n", 100 * hit / lines, lines, least
        exit 100 * hit < least * lines
    }' "$build/coverage.files"
