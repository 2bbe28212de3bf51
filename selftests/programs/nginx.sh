#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# nginx with wrk, with and without connections that are used again, and with curl
# over TLS.
#
# vm: --topology pair --timeout 1200 --programs

. "$(dirname "$0")/lib.sh"
need nginx wrk curl openssl

mkdir -p "$WORK/www" "$WORK/tmp"
chmod 755 "$WORK" "$WORK/www"
head -c 1000 /dev/urandom >"$WORK/www/small"
head -c 8000000 /dev/urandom >"$WORK/www/large"
certificate || bail "no certificate"

cat >"$WORK/nginx.conf" <<-CONF
	worker_processes 2;
	daemon off;
	pid $WORK/nginx.pid;
	error_log $WORK/nginx.log warn;
	events { worker_connections 512; }
	http {
		access_log off;
		sendfile on;
		tcp_nopush on;
		client_max_body_size 100m;
		client_body_temp_path $WORK/tmp/body;
		proxy_temp_path $WORK/tmp/proxy;
		fastcgi_temp_path $WORK/tmp/fastcgi;
		uwsgi_temp_path $WORK/tmp/uwsgi;
		scgi_temp_path $WORK/tmp/scgi;
		server {
			listen $A:8080;
			root $WORK/www;
		}
		server {
			listen $A:8443 ssl;
			http2 on;
			ssl_certificate $WORK/cert.pem;
			ssl_certificate_key $WORK/key.pem;
			root $WORK/www;
		}
	}
CONF

web() {
	: >"$WORK/nginx.log"
	serve 8080 nginx -c "$WORK/nginx.conf" -e "$WORK/nginx.log"
}

# wrk says what went wrong in lines of its own, if anything did.
load() {
	client 60 wrk -t 2 -c 20 -d 10s --timeout 10s "$@" | tee "$WORK/wrk" || return
	! grep -E 'Socket errors|Non-2xx' "$WORK/wrk" &&
		awk '/requests in/ { n = $1 } END { exit !(n > 10) }' "$WORK/wrk" &&
		! grep -E 'alert|emerg|crit|error' "$WORK/nginx.log"
}

keep_alive() {
	web && load "http://$A:8080/small"
}

new_ones() {
	web && load -H 'Connection: close' "http://$A:8080/small"
}

large_file() {
	web && client 120 curl -sS --fail -o "$WORK/got" "http://$A:8080/large" && same "$WORK/got" "$WORK/www/large"
}

# tls OPTION...: a large file three times, of which only the first makes a connection.
tls() {
	web || return
	client 200 curl -sS --fail "$@" --cacert "$WORK/cert.pem" -w '%{num_connects} %{http_code} %{ssl_verify_result}\n' \
		"https://$A:8443/large" -o "$WORK/got1" "https://$A:8443/small" -o "$WORK/got2" \
		"https://$A:8443/large" -o "$WORK/got3" | tee "$WORK/curl" || return
	is "1 200 0 0 200 0 0 200 0" xargs <"$WORK/curl" && same "$WORK/got1" "$WORK/www/large" &&
		same "$WORK/got2" "$WORK/www/small" && same "$WORK/got3" "$WORK/www/large"
}

both_ways "connections used again" keep_alive
both_ways "a connection for each request" new_ones
both_ways "a file of 8 MB, by sendfile()" large_file
both_ways "TLS, HTTP 1.1" tls --http1.1
both_ways "TLS, HTTP 2" tls --http2
done_testing
