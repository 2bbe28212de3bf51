#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What `make install` puts on a machine serves there: the module is found by its name,
# programs run under the installed smc_run, shells complete the tools' words.
#
# vm: --topology pair --module none --timeout 300
# slow: installs into the machine

. "$(dirname "$0")/../lib.sh"

# The modules in use and no others: depmod reads all of them, which takes minutes here, and the
# module of this project is among those that the machine has.
tree=/usr/lib/modules/$(uname -r)
few_modules() {
	local file
	mkdir "$WORK/tree" && cp "$tree"/modules.order "$tree"/modules.builtin* "$WORK/tree" || return 1
	lsmod | awk 'NR > 1 { print $1 }' | xargs modinfo -n | sed -n 's,.*/modules/[^/]*/,,p' | while read -r file; do
		install -D -m 644 "$tree/$file" "$WORK/tree/$file" || return 1
	done
	mount --bind "$WORK/tree" "$tree"
}
check "the machine has the modules in use" few_modules
refuse "this one is not among them" modinfo smc_rs
export SMC_RS_BUILD=/out
check "everything is installed" /src/scripts/install
note "$(tail -1 "$last")"
export PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
echo "options smc_rs ueid=SMC-RS-TEST" >/etc/modprobe.d/smc_rs.conf
check "the module is found by its name" modprobe smc_rs
check "it is the one that was installed" is "$(uname -r)/extra/smc_rs.ko" sh -c \
	'modinfo -n smc_rs | sed "s,.*/modules/,,"'
check "the socket family loads it" sh -c "modinfo -F alias smc_rs | grep -qx net-pf-43"
for tool in smc smcss smcr smcd smc_pnet smc_ueid smc_run; do
	check "$tool answers" "/usr/local/bin/$tool" --help
	check "it has a manual page" grep -q "^\.TH $tool 1" "/usr/local/share/man/man1/$tool.1"
	check "bash completes it" bash -c ". /usr/local/share/bash-completion/completions/$tool; complete -p $tool"
done
cat >"$WORK/serve.py" <<'END_OF_PROGRAM'
import socket, sys
with socket.create_server((sys.argv[1], 7000)) as listener:
    peer, _ = listener.accept()
    peer.sendall(peer.recv(100))
END_OF_PROGRAM
cat >"$WORK/ask.py" <<'END_OF_PROGRAM'
import socket, sys
with socket.create_connection((sys.argv[1], 7000)) as peer:
    peer.sendall(b"hello")
    print(peer.recv(100).decode())
END_OF_PROGRAM
start ip netns exec a smc_run python3 "$WORK/serve.py" "$A"
wait_port a 7000
check "a program uses SMC-R under the installed smc_run" smcr is hello \
	ip netns exec b smc_run python3 "$WORK/ask.py" "$A"
stop_all
check "the connections are gone" wait_for 20 quiet a b
check "the module is unloaded" modprobe -r smc_rs
check "everything is removed" /src/scripts/install --remove
refuse "the module is not found any more" modprobe smc_rs
left() {
	find "$tree/extra" -type f 2>/dev/null
	find /usr/local -name '*smc*' -type f
}
check "nothing is left" is "" left
done_testing
