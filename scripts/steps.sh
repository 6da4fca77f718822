# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
# Numbered steps with visible progress. quickstart and check source this file. They set steps, the number of steps, and
# log, a file. They may set watched, a pattern of more files; the last line of the newest file shows the progress.

step_number=0
started=$SECONDS
ticker=
watched=

last_line() {
    # shellcheck disable=SC2086,SC2012 # a pattern, of names without blanks
    tail -n 1 "$(ls -t "$log" $watched 2>/dev/null | head -n 1)" 2>/dev/null | tr -cd '[:print:]'
}

# Shows the seconds and the last line of the log: on a terminal always in the same line, elsewhere every 30 seconds.
tick() {
    local title=$1 since=$SECONDS last width
    width=$(($(tput cols 2>/dev/null || echo 80) - 1))
    while sleep 1 >/dev/null 2>&1; do
        last=$(last_line)
        if [[ -t 1 ]]; then
            last="$title ... $((SECONDS - since)) s  $last"
            printf '\r\033[K%s' "${last:0:width}"
        elif (((SECONDS - since) % 30 == 0)); then
            printf '      ... %s s  %s\n' "$((SECONDS - since))" "${last:0:100}"
        fi
    done
}

stop_ticker() {
    [[ -z $ticker ]] || { kill "$ticker" && wait "$ticker"; } 2>/dev/null
    ticker=
    [[ ! -t 1 ]] || printf '\r\033[K'
}
trap stop_ticker EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# try_step TITLE ADVICE COMMAND...: runs COMMAND with its output in the log. If COMMAND fails, prints the end of the log
# and the advice, and returns 1.
try_step() {
    local title advice=$2 since=$SECONDS status=0
    title="[$((++step_number))/$steps] $1"
    shift 2
    [[ -t 1 ]] || echo "$title"
    printf '\n== %s\n' "$title" >>"$log"
    tick "$title" &
    ticker=$!
    "$@" >>"$log" 2>&1 </dev/null || status=$?
    stop_ticker
    if ((status == 0)); then
        if [[ -t 1 ]]; then echo "$title: $((SECONDS - since)) s"; else echo "      $((SECONDS - since)) s"; fi
        return
    fi
    {
        echo "$title: failed with status $status. The end of $log:"
        tail -n 60 "$log" | sed 's/^/    /'
        echo "What to do: $advice"
    } >&2
    return 1
}

# The same, but ends the script if COMMAND fails.
step() {
    try_step "$@" || exit 1
}

# skipped TITLE WHY: for a step that has nothing to do.
skipped() {
    echo "[$((++step_number))/$steps] $1: $2"
}

say() {
    echo "      $*"
}
