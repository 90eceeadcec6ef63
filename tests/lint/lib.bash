# SPDX-License-Identifier: LGPL-2.1-or-later
# shellcheck shell=bash
# For the checks: they run with the root of the sources as their first argument.

set -euo pipefail
export LC_ALL=C

cd "${1:-$(dirname "${BASH_SOURCE[0]}")/../..}"

# Prints the names of all files of the project, new ones included.
list_files() {
    if git rev-parse --show-toplevel >/dev/null 2>&1 && [ -e .git ]; then
        git ls-files -co --exclude-standard
    else
        find . -name .git -prune -o -name 'build*' -type d -prune -o -type f -print
    fi | sed 's|^\./||' | sort -u | while IFS= read -r file; do
        if [ -f "$file" ]; then printf '%s\n' "$file"; fi
    done
}

# C sources and headers; $1: "all", or "code" for those outside of tests/.
list_c() {
    list_files | grep -E '\.[ch]$' | if [ "$1" = all ]; then cat; else grep -v '^tests/'; fi || true
}

# Prints FILE:LINE:TEXT of every line of the files on stdin, without comments; $1: "keep", or "blank"
# to empty string and character literals too.
without_comments() {
    tr '\n' '\0' | xargs -0 -r awk -v strings="$1" '
        FNR == 1 { comment = 0 }
        {
            out = ""; n = length($0); quote = ""
            for (i = 1; i <= n; i++) {
                c = substr($0, i, 1); two = substr($0, i, 2)
                if (comment) {
                    if (two == "*/") { comment = 0; i++ }
                } else if (quote != "") {
                    if (c == "\\") { if (strings == "keep") out = out two; i++; continue }
                    if (c == quote) quote = ""
                    if (strings == "keep" || quote == "") out = out c
                } else if (two == "/*") { comment = 1; i++ }
                else if (two == "//") break
                else { if (c == "\"" || c == "\047") quote = c; out = out c }
            }
            print FILENAME ":" FNR ":" out
        }'
}

# complain MESSAGE: names every line of stdin with it and remembers the failure.
complain() {
    local line

    while IFS= read -r line; do
        printf '%s\n    -> %s\n' "$line" "$1"
        failed=1
    done
}

# shellcheck disable=SC2034 # the exit status of the check
failed=0
