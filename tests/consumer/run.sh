#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tests/consumer/run.sh PREFIX: builds and runs C11, C++17 and Fortran programs against an installed
# Catena, with pkg-config and with find_package, and the Fortran program with fpm too. Compiles
# every installed header on its own, and checks the code in the documentation (docs.py).
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
prefix=$(cd "${1:?usage: run.sh PREFIX}" && pwd -P)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
strict=(-Wall -Wextra -pedantic -Werror)

pc=$(find "$prefix" -name catena.pc)
[ -n "$pc" ] || { echo "consumer: no catena.pc under $prefix" >&2; exit 1; }
PKG_CONFIG_PATH=$(dirname "$pc")
export PKG_CONFIG_PATH
read -ra cflags <<< "$(pkg-config --cflags catena)"
read -ra libs <<< "$(pkg-config --libs catena)"
libs+=("-Wl,-rpath,$(pkg-config --variable=libdir catena)")

# compile COMMAND...: of one header, which is the last word.
compile() { echo "#include <${*: -1}>" | "${@:1:$#-1}" -fsyntax-only -; }
export -f compile

flags="${strict[*]} ${cflags[*]}"
for header in "$prefix"/include/catena/{,cpp/}*.h{,pp}; do
    [ -f "$header" ] || continue
    name=${header#"$prefix"/include/}
    mpi=
    if [ "$name" = catena/mpi.h ]; then # the only one that includes another library's header
        command -v mpicc > /dev/null || { echo "no mpicc: $name is not checked" >&2; continue; }
        mpi=$(mpicc -show | tr ' ' '\n' | sed -n 's/^-I/-isystem /p' | tr '\n' ' ')
    fi
    [[ $name = *.hpp ]] || echo "gcc -std=c11 -x c $flags $mpi $name"
    echo "g++ -std=c++17 -x c++ $flags $mpi $name"
done | xargs -P "$(nproc)" -L 1 bash -c 'compile "$@"' compile
echo "consumer: every header compiles on its own in C11 and C++17"

gcc -std=c11 "${strict[@]}" "${cflags[@]}" "$here/consumer.c" -o "$work/c" "${libs[@]}"
g++ -std=c++17 "${strict[@]}" "${cflags[@]}" "$here/consumer.cpp" -o "$work/cxx" "${libs[@]}"
echo "consumer: with pkg-config"
"$work/c"
"$work/cxx"
fortran=$(pkg-config --variable=fortrandir catena)
if command -v gfortran > /dev/null; then
    mapfile -t modules < <(sed "s|^|$fortran/|" "$fortran/SOURCES")
    (cd "$work" && gfortran "${strict[@]}" "${modules[@]}" "$here/consumer.f90" -o fortran \
        "${libs[@]}" && ./fortran)
else
    echo "consumer: skipped Fortran: there is no gfortran"
fi

if command -v ninja > /dev/null; then export CMAKE_GENERATOR=Ninja; fi
cmake -S "$here" -B "$work/build" -DCMAKE_PREFIX_PATH="$prefix" > "$work/log" 2>&1 &&
    cmake --build "$work/build" >> "$work/log" 2>&1 || { cat "$work/log"; exit 1; }
echo "consumer: with find_package"
"$work/build/consumer_c"
"$work/build/consumer_cxx"
[ ! -x "$work/build/consumer_fortran" ] || "$work/build/consumer_fortran"

# Another program is called fpm too.
if fpm --version 2> /dev/null | grep -qi fortran && command -v gfortran > /dev/null; then
    echo "consumer: with fpm"
    mkdir -p "$work/fpm/app"
    cp "$here/consumer.f90" "$work/fpm/app/main.f90"
    # fpm takes paths as relative to the project.
    printf 'name = "consumer"\n[dependencies]\ncatena = { path = "%s" }\n' \
        "$(realpath --relative-to="$work/fpm" "$fortran")" > "$work/fpm/fpm.toml"
    libdir=$(pkg-config --variable=libdir catena)
    (cd "$work/fpm" && LIBRARY_PATH=$libdir LD_LIBRARY_PATH=$libdir fpm run)
else
    echo "consumer: skipped fpm: there is no fpm or no gfortran"
fi

if [ -x "$prefix/bin/catena" ]; then
    missing=$(ldd "$prefix/bin/catena" | grep 'not found' || true)
    [ -z "$missing" ] ||
        { echo "consumer: the installed command lacks libraries: $missing" >&2; exit 1; }
    # A wrong command line gives exit code 2, one line on stderr and nothing on stdout.
    for wrong in "" inf --verson "--version x" "info --jsn" "info extra" bench "bench mpl" \
        "bench mlp -t" "bench mlp --steps" "bench mlp --steps 0" "bench mlp --steps x" \
        "bench mlp --threads 99999" "explain mlpp" "help benhc"; do
        code=0
        # shellcheck disable=SC2086 # words
        "$prefix/bin/catena" $wrong > "$work/out" 2> "$work/err" || code=$?
        [ "$code" = 2 ] && [ ! -s "$work/out" ] && [ "$(wc -l < "$work/err")" = 1 ] ||
            { echo "consumer: catena $wrong: exit code $code" >&2; cat "$work/err" >&2; exit 1; }
    done
    echo "consumer: wrong command lines are refused"
fi

if [ -x "$prefix/bin/catena" ]; then
    "$here/../cli/own_model.sh" "$prefix"
fi

cd "$here/../.."
python3 tests/consumer/docs.py "$prefix" ./*.md docs/*.md
