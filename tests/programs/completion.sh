#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# The completion that bash offers. TAP. Arguments: the program, the file with the completion.
set -u
W=$(mktemp -d)
trap 'rm -rf "$W"' EXIT
n=0
# A container to be offered; the rest is the program's own help.
cat >"$W/sandvirt" <<END
#!/bin/sh
case " \$* " in
*' --root /other list '*) echo of-other ;;
*' list '*) echo web; echo db ;;
*) exec '$1' "\$@" ;;
esac
END
chmod 0755 "$W/sandvirt"
PATH=$W:$PATH
# shellcheck source=/dev/null
. "$2"

# offers WANTED WORD...: of these words, as bash splits them, the last one is completed.
offers() {
    local wanted=$1
    shift
    # shellcheck disable=SC2034 # for the completion
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
    COMPREPLY=(stale)
    _sandvirt
    n=$((n + 1))
    if [ "${COMPREPLY[*]}" = "$wanted" ]; then
        echo "ok $n - $*"
    else
        echo "not ok $n - $*: '${COMPREPLY[*]}', not '$wanted'"
    fi
}

offers 'start state stop' sandvirt st
offers 'checkpoint' sandvirt checkp
offers 'web db' sandvirt state ''
offers 'web' sandvirt exec w
offers 'of-other' sandvirt --root /other state ''
offers 'of-other' sandvirt --root = /other state ''
offers 'start state stop' sandvirt --root state st
offers '--log --log-format' sandvirt --lo
offers '--pid-file --pidfd-socket --preserve-fds' sandvirt run --p
offers '--all --svg' sandvirt timeline web --
# a value: what bash completes by itself, files
offers '' sandvirt --root ''
offers '' sandvirt --root = ''
offers '' sandvirt run --bundle ''
offers '' sandvirt run -b ''
offers '' sandvirt run --bundle = ''
# none
offers 'web db' sandvirt run --detach ''
offers 'web db' sandvirt run -d ''
offers 'web db' sandvirt delete --force ''
echo "1..$n"
