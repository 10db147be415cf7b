#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tests/mpi/test_insitu.sh LIBDIR MPIRUN [OPTION ...]: the solvers of examples/insitu, in C and in Fortran, on two ranks, in three
# variants: without Catena, linked but not training, training. The result of the solver must be the same bits in all of them and in both
# languages; the surrogate must learn; signals, affinity, floating-point mode, OpenMP's settings and MPI's error handlers must
# stay (host_state.c). Then again with rounding upwards and exceptions that trap. LIBDIR holds libcatena.so and the plug-ins.
# MPICC and MPIFC are the compilers; without MPIFC the Fortran part is skipped, and said so.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
top=$(cd "$here/../.." && pwd -P)
lib=$(cd "${1:?usage: test_insitu.sh LIBDIR MPIRUN [OPTION ...]}" && pwd -P)
shift
launch=("$@")
read -ra cc <<< "${MPICC:-mpicc} -O2 -fopenmp -Wall -Wextra -Werror -I$top/include"
read -ra fc <<< "${MPIFC:-} -O2 -fopenmp -Wall -Wextra -Werror"
link=("-L$lib" "-Wl,-rpath,$lib" -lcatena -lm)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
unset CATENA_MPI CATENA_PLUGIN_DIR
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 CATENA_TUNE=0
export OMP_NUM_THREADS=2 OMP_WAIT_POLICY=passive OMP_SCHEDULE=guided,7

die() { echo "insitu: $*" >&2; exit 1; }

# Each rank on one CPU of those that are there, so that a changed affinity would be seen.
cat > pinned << 'EOF'
#!/usr/bin/env bash
rank=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}}
cpus=()
IFS=, read -ra parts <<< "$(taskset -cp $$ | sed 's/.*: //')"
for part in "${parts[@]}"; do
    for ((c = ${part%-*}; c <= ${part#*-}; c++)); do cpus+=("$c"); done
done
exec taskset -c "${cpus[rank % ${#cpus[@]}]}" env LD_PRELOAD="$HOST_PRELOAD" "$@"
EOF
chmod +x pinned

# run NAME PROGRAM [ARGUMENT]: in a folder of that name, which the result and the reports are left in.
run() {
    local name=$1
    shift
    mkdir "$name"
    (cd "$name" && HOST_PRELOAD=$work/host_state.so HOST_REPORT=$work/$name/host timeout 300 \
        "${launch[@]}" -n 2 "$work/pinned" "$@" > log 2> errors) ||
        { cat "$name/log" "$name/errors" >&2; die "$name: exit code $?"; }
    [ "$(stat -c %s "$name/heat.bin")" = 131072 ] || die "$name: heat.bin is $(wc -c < "$name/heat.bin") bytes"
}

# same A B: the solver's results, and the state that the programs end with.
same() {
    cmp "$1/heat.bin" "$2/heat.bin" || die "$1 and $2: the solver's results differ"
    [ "$(grep -o 'heat *[0-9.]*' "$1/log")" = "$(grep -o 'heat *[0-9.]*' "$2/log")" ] || die "$1 and $2: other heat"
    for rank in 0 1; do
        diff "$1/host.$rank.exit" "$2/host.$rank.exit" || die "$1 and $2: another state at the end of rank $rank"
    done
}

# trained NAME: nothing changed behind 2 looks for each of 400 steps, and the surrogate beats "no change" five times.
trained() {
    for rank in 0 1; do
        grep -q '^looks 8[0-9][0-9], changes 0$' "$1/host.$rank.calls" ||
            { cat "$1/host.$rank.calls" >&2; die "$1: rank $rank is not left as it was"; }
    done
    tail -1 "$1/log" | sed 's/,//' | awk '{ exit !($6 > 0 && $6 * 5 < $10) }' ||
        { cat "$1/log" >&2; die "$1: the surrogate has not learnt"; }
}

# variants NAME PLAIN LINKED
variants() {
    run "$1.plain" "$2"
    run "$1.idle" "$3" --no-train
    run "$1.train" "$3"
    same "$1.plain" "$1.idle"
    same "$1.plain" "$1.train"
    trained "$1.train"
    echo "insitu: $1: results and state the same without Catena, linked, and training; $(tail -1 "$1.train/log")"
}

"${cc[@]}" -DHOST_MAIN "$here/host_state.c" -o host_state -ldl -lm
"${launch[@]}" -n 1 ./host_state || die "host_state does not see every change"
"${cc[@]}" -shared -fPIC "$here/host_state.c" -o host_state.so -ldl -lm

insitu=$top/examples/insitu
"${cc[@]}" -DNO_CATENA "$insitu/insitu.c" -o plain
"${cc[@]}" "$insitu/insitu.c" -o insitu "${link[@]}"
variants C "$work/plain" "$work/insitu"
HOST_MODE=hard OMP_DYNAMIC=true variants hard "$work/plain" "$work/insitu"
cmp -s C.plain/heat.bin hard.plain/heat.bin && die "rounding upwards has made no difference"

if [ -z "${MPIFC:-}" ]; then
    echo "insitu: skipped: no Fortran compiler of this MPI"
    exit 0
fi
fortran=$top/bindings/fortran
"${fc[@]}" -DNO_CATENA "$insitu/insitu.F90" -o plain_f
"${fc[@]}" "$fortran/catena.f90" "$fortran/catena_f08.f90" "$insitu/insitu.F90" -o insitu_f "${link[@]}"
variants Fortran "$work/plain_f" "$work/insitu_f"
cmp C.plain/heat.bin Fortran.plain/heat.bin || die "C and Fortran: the solver's results differ"
# Reals are compared for equality there on purpose.
"${fc[@]}" -fcheck=all -Wno-compare-reals -Wno-function-elimination "$fortran/catena.f90" "$here/test_fortran.f90" -o fortran "${link[@]}"
"${launch[@]}" -n 2 ./fortran || die "test_fortran: exit code $?"
