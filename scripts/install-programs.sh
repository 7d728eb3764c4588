#!/usr/bin/env bash
# Installs programs: `install-programs.sh FROM TO PROGRAM…`. Symbols and line numbers, most of what
# the linker writes, go to TO/.debug, where backtraces and debuggers look for them.
set -euo pipefail

from=$1 to=$2
shift 2
install -d "$to/.debug"
for program in "$@"; do
    objcopy --only-keep-debug --compress-debug-sections "$from/$program" "$to/.debug/$program.debug"
    chmod 644 "$to/.debug/$program.debug"
    # A running program's file cannot be written to, but another can take its name.
    objcopy --strip-all --add-gnu-debuglink="$to/.debug/$program.debug" \
        "$from/$program" "$to/.$program.new"
    chmod 755 "$to/.$program.new"
    mv "$to/.$program.new" "$to/$program"
done
