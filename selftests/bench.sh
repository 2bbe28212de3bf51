#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Measures TCP, SMC-R and raw RDMA side by side in virtual machines and writes the figures into
# a folder: TOPOLOGY.json, TOPOLOGY.txt, and all single results in TOPOLOGY/.
#
#   selftests/bench.sh [--topology pair|hosts|both] [--out FOLDER] [--quick]
#                      [--kernel KERNEL] [--module smc_rs|smc]
#
# pair is one machine with two network namespaces, hosts is two machines with one processor
# each. --quick measures each figure once and briefly. Without --out the folder is bench/ in
# the build folder. --kernel and --module are those of selftests/vm: the kernel's own SMC can be
# measured on the reference kernel, in hosts only, as it uses no RDMA inside of one machine; the
# names of the files say so.
#
# Exit status: 0 all was measured, else a connection fell back to TCP or a measurement failed.
set -u

top=$(cd "$(dirname "$0")/.." && pwd)
build=${SMC_RS_BUILD:-$top/build}

fail() {
	echo "bench: $*" >&2
	exit 2
}

topologies="pair hosts"
out=$build/bench
kernel=stock module=smc_rs
while [ $# -gt 0 ]; do
	case $1 in
	--topology | --out | --kernel | --module)
		[ $# -ge 2 ] || fail "$1 needs a value."
		case $1 in
		--out) out=$2 ;;
		--kernel) kernel=$2 ;;
		--module) module=$2 ;;
		*) topologies=$2 ;;
		esac
		shift
		;;
	--quick) export SMC_BENCH_ROUNDS=1 SMC_BENCH_SECONDS=1 SMC_BENCH_IDLE=50 ;;
	-h | --help)
		sed -n '4,16s/^# \{0,1\}//p' "$0"
		exit 0
		;;
	*) fail "the option $1 is unknown: see bench.sh --help." ;;
	esac
	shift
done
case $topologies in
both) topologies="pair hosts" ;;
pair | hosts | "pair hosts") ;;
*) fail "the topology $topologies is unknown: use pair, hosts or both." ;;
esac

mkdir -p "$build/bench" "$out" || fail "the folder $out cannot be made."
status=0
suffix=
[ "$module" != smc ] || topologies=hosts
[ "$kernel $module" = "stock smc_rs" ] || suffix=-$kernel-$module
for topology in $topologies; do
	echo "Measuring $module in topology $topology on the kernel $kernel"
	"$top/selftests/vm" --topology "$topology" --kernel "$kernel" --module "$module" --timeout 1200 -- \
		/src/selftests/bench/guest.sh "$topology" "/out/bench/$topology$suffix" </dev/null || status=$?
done
if [ ! "$out" -ef "$build/bench" ]; then
	cp -r "$build/bench/." "$out/" || fail "the results cannot be copied to $out."
fi
echo "The figures are in $out."
exit "$status"
