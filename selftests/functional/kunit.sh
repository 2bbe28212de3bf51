#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# The suites that the module carries for kernels with KUnit. They run when it is
# loaded and report to the kernel's log, from where each result is taken over.
#
# vm: --topology pair --timeout 300
# kernel: debug,kasan

. "$(dirname "$0")/../lib.sh"
need_module

# reload: the log has the reports of one load only.
reload() {
	modprobe -r smc_rs && dmesg -C && modprobe smc_rs && dmesg >"$WORK/log"
}

# results SUITE: "ok NAME" or "not ok NAME" for each test of a suite.
results() {
	sed -E 's/^\[[^]]*\] ?//' "$WORK/log" | awk -v suite="$1" '
		$1 == "#" && $2 == "Subtest:" { inside = $3 == suite }
		inside && /^ +(not )?ok [0-9]+ / {
			bad = $1 == "not"
			print (bad ? "not ok" : "ok"), $(bad ? 4 : 3)
		}'
}

# planned SUITE: how many tests it says that it has.
planned() {
	sed -E 's/^\[[^]]*\] ?//' "$WORK/log" | awk -v suite="$1" '
		$1 == "#" && $2 == "Subtest:" { inside = $3 == suite }
		inside && /^ +1\.\./ { sub(/.*\.\./, ""); print; exit }'
}

check "the module is loaded again" reload
for suite in smc_rs_proto smc_rs_kapi; do
	results "$suite" >"$WORK/results"
	while read -r verdict name; do
		[ "$verdict" = ok ]
		result $? "$suite: $name" "$WORK/log"
	done < <(sed 's/^not ok/not_ok/' "$WORK/results")
	want=$(planned "$suite")
	have=$(wc -l <"$WORK/results")
	[ "${want:-0}" -gt 0 ] && [ "$have" -eq "${want:-0}" ]
	result $? "$suite: all ${want:-0} tests reported, $have of them" "$WORK/log"
done
done_testing
