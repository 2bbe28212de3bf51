# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Programs to run under smc_run: Debian's packages in a layer over the build root.

program_packages() {
	sed -e 's/#.*//' -e '/^[[:space:]]*$/d' "$top/scripts/setup.d/program-packages"
}

programs_dir() {
	printf '%s/programs-%s\n' "$cache" "$(hash_of "$(root_dir)" "$(program_packages)")"
}

# The packages are installed where the root lies below and the layer on top; what
# the installation wrote is the layer.
make_programs() {
	local layer log=$cache/log/programs.log teller
	layer=$(programs_dir)
	need_free 2 "the programs"
	rm -rf "$layer.new" "$layer.work"
	mkdir -p "$layer.new" "$layer.work/tmp" "$layer.work/merged"
	tell_download "$log" 9>&- &
	teller=$!
	# shellcheck disable=SC2016,SC2046
	unshare --mount --propagation private bash -c '
		set -e
		root=$1 layer=$2 work=$3; shift 3
		mount -t overlay -o "lowerdir=$root,upperdir=$layer,workdir=$work/tmp" root "$work/merged"
		cd "$work/merged"
		mount -t proc proc proc
		mount --rbind /dev dev
		mount -t tmpfs -o mode=1777 tmp tmp
		mount -t tmpfs -o mode=755 run run
		cp /etc/resolv.conf etc/resolv.conf
		printf "%s\n" "#!/bin/sh" "exit 101" >usr/sbin/policy-rc.d
		chmod 755 usr/sbin/policy-rc.d
		exec chroot . /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
			LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive sh -c "
				apt-get -o APT::Sandbox::User=root -q update
				apt-get -o APT::Sandbox::User=root -qy install --no-install-recommends \"\$@\"
				rm -rf /var/cache/apt/archives/*.deb /var/lib/apt/lists/*_dists_*
			" sh "$@"
	' programs "$(root_dir)" "$layer.new" "$layer.work" $(program_packages) >"$log" 2>&1 || {
		kill "$teller" 2>/dev/null
		explain "$log" "programs"
	}
	kill "$teller" 2>/dev/null
	rm -rf "$layer.work"
	mv "$layer.new" "$layer"
}

# Says from time to time how far the packages are.
tell_download() {
	local log=$1 start=$SECONDS
	while sleep 15 && kill -0 "$$" 2>/dev/null; do
		quiet='' note "$(printf '%-18s %d packages fetched, %d unpacked, %d s' programs \
			"$(grep -c '^Get:' "$log")" "$(grep -c '^Unpacking ' "$log")" $((SECONDS - start)))"
	done
}
