#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# The manual page names every command and option that the tool's help names, and no others; its form pleases mandoc, or
# else man.
#
# usage: manual.sh npuquant.1 tool
set -eu

page=$1
tool=$2
failed=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

commands=$("$tool" --help | sed -n 's/^  \([a-z][a-z-]*\)  .*/\1/p')
[ -n "$commands" ] || { echo "FAILED: no commands in the help"; exit 1; }
{
    echo "$commands"
    "$tool" --help | grep -o -E -e '--[a-z][a-z0-9-]*' -e ' -[A-Z]\b' | tr -d ' '
    for command in $commands; do
        {
            "$tool" "$command" --help
            for operator in $commands; do # of diagnose and others, each with options of its own
                "$tool" "$command" "$operator" --help 2>/dev/null || :
            done
        } | grep -o -E -e '(^| )-(-[a-z][a-z0-9-]*|[a-z]\b)' | tr -d ' '
    done
} | grep -v -x -e --name | sort -u >"$work/help"

# Commands and options by their macros: .It Fl o , -output Ar file
{
    sed -n 's/^\.It Cm \([a-z-]*\)$/\1/p' "$page"
    grep -E '^\.It .*Fl ' "$page" | sed 's/ Ar [^ ]*//g; s/ Cm .*//; s/^\.It //; s/[ ,]Fl / /g; s/^Fl / /; s/,/ /g' |
        tr -s ' ' '\n' | sed -n 's/^\(..*\)$/-\1/p' | grep -v -x -e -Ns
} | sort -u >"$work/page"
if diff "$work/help" "$work/page"; then
    echo "ok: $(wc -l <"$work/page") commands and options, in the help and in the page"
else
    echo "FAILED: the page (>) does not name what the help (<) names"
    failed=1
fi

if command -v mandoc >/dev/null 2>&1; then
    if mandoc -T lint -W warning "$page"; then
        echo "ok: mandoc"
    else
        failed=1
    fi
elif command -v man >/dev/null 2>&1; then
    man --warnings -l -E UTF-8 "$page" 2>"$work/warnings" >"$work/text"
    if [ -s "$work/warnings" ] || ! [ -s "$work/text" ]; then
        cat "$work/warnings"
        echo "FAILED: man"
        failed=1
    else
        echo "ok: man"
    fi
else
    echo "SKIPPED: form of the page: neither mandoc nor man"
    [ "${CI:-}" != true ] || failed=1
fi
exit $failed
