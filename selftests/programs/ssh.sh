#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# ssh: a command, a large scp in each direction, a forwarded port.
#
# vm: --topology pair --timeout 1500 --programs
#
# SSH_MEGABYTES says how large the file is.

. "$(dirname "$0")/lib.sh"
need sshd ssh scp ssh-keygen

MEGABYTES=${SSH_MEGABYTES:-60}
mkdir -p /run/sshd
chmod 755 "$WORK"
for key in host user; do
	ssh-keygen -q -t ed25519 -N '' -f "$WORK/$key" || bail "no keys"
done
cp "$WORK/user.pub" "$WORK/authorized"
echo "[$A]:2222 $(cut -d' ' -f1,2 "$WORK/host.pub")" >"$WORK/known"
cat >"$WORK/sshd_config" <<-CONF
	Port 2222
	ListenAddress $A
	HostKey $WORK/host
	PidFile $WORK/sshd.pid
	AuthorizedKeysFile $WORK/authorized
	StrictModes no
	PermitRootLogin yes
	UsePAM no
	Subsystem sftp internal-sftp
CONF
options=(-F none -o "UserKnownHostsFile=$WORK/known" -o "IdentityFile=$WORK/user" -o BatchMode=yes)
head -c "${MEGABYTES}M" /dev/urandom >"$WORK/file"

server() {
	serve 2222 "$(command -v sshd)" -D -e -f "$WORK/sshd_config"
}

command_there() {
	server || return
	is "there 3" client 60 ssh "${options[@]}" -p 2222 "root@$A" 'echo there $((1 + 2))' || return
	seq 100000 | client 60 ssh "${options[@]}" -p 2222 "root@$A" 'tac' >"$WORK/tac" || return
	seq 100000 | tac | cmp - "$WORK/tac"
}

copy() {
	server || return
	rm -f "$WORK/there" "$WORK/back"
	client 500 scp -q "${options[@]}" -P 2222 "$WORK/file" "root@$A:$WORK/there" || return
	same "$WORK/file" "$WORK/there" || return
	client 500 scp -q "${options[@]}" -P 2222 "root@$A:$WORK/there" "$WORK/back" && same "$WORK/file" "$WORK/back"
}

both_ways "commands" command_there
both_ways "scp of $MEGABYTES MB to and fro" copy
done_testing
