#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# PostgreSQL with pgbench.
#
# vm: --topology pair --timeout 1500 --memory 3G --programs

. "$(dirname "$0")/lib.sh"
PATH=$PATH:/usr/lib/postgresql/17/bin
need postgres pgbench psql

DATA=/var/lib/postgresql/17/main
mkdir -p /run/postgresql
chown postgres: /run/postgresql "$DATA"
cat >"$WORK/hba" <<-CONF
	local all all trust
	host all all $B/32 trust
CONF
chmod 755 "$WORK"
chmod 644 "$WORK/hba"

server() {
	serve 5432 setpriv --reuid postgres --regid postgres --clear-groups "$(command -v postgres)" -D "$DATA" \
		-c config_file=/etc/postgresql/17/main/postgresql.conf -c "hba_file=$WORK/hba" \
		-c "listen_addresses=$A" -c fsync=off -c ssl=off
}

query() {
	client 60 psql -h "$A" -U postgres -qtAX -c "$1" postgres
}

# After the load, the sums of all tables are the same: nothing was lost or done twice.
load() {
	server || return
	wait_for 60 query 'select 1' || return
	client 200 pgbench -h "$A" -U postgres -i -q -s 1 postgres 2>"$WORK/init" || {
		cat "$WORK/init"
		return 1
	}
	client 200 pgbench -h "$A" -U postgres -c 6 -j 2 -t 50 "$@" postgres >"$WORK/pgbench" 2>&1 || {
		cat "$WORK/pgbench"
		return 1
	}
	tail -12 "$WORK/pgbench"
	grep 'number of transactions actually processed: 300/300' "$WORK/pgbench" &&
		grep 'number of failed transactions: 0 ' "$WORK/pgbench" &&
		is "300 t" query "select count(*) || ' ' || case when sum(delta) = (select sum(abalance) from pgbench_accounts)
			and sum(delta) = (select sum(bbalance) from pgbench_branches)
			and sum(delta) = (select sum(tbalance) from pgbench_tellers) then 't' else 'f' end from pgbench_history"
}

# 100,000 rows there and back.
rows() {
	server || return
	wait_for 60 query 'select 1' || return
	query 'drop table if exists numbers; create table numbers (n int, t text)' || return
	seq 100000 | awk '{ print $1 "\tnumber " $1 }' >"$WORK/rows"
	client 100 psql -h "$A" -U postgres -qX -c '\copy numbers from stdin' postgres <"$WORK/rows" || return
	client 100 psql -h "$A" -U postgres -qX -c '\copy (select * from numbers order by n) to stdout' postgres \
		>"$WORK/rows.back" && same "$WORK/rows" "$WORK/rows.back"
}

both_ways "pgbench" load
both_ways "pgbench, a connection for each transaction" load -C
both_ways "copying 100,000 rows" rows
done_testing
