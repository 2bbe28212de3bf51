# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# The kernel: Debian's packages as they are, and a build tree for modules. The
# packaged headers lack what Rust modules need, so that part is rebuilt from the
# packaged source with the packaged configuration.

pick_kernel() {
	local log=$cache/log/pick.log picked
	picked=$(picked_file)
	cp /etc/resolv.conf "$(root_dir)/etc/resolv.conf"
	in_root apt-get -o APT::Sandbox::User=root -o APT::Update::Error-Mode=any -q update >"$log" 2>&1 ||
		explain "$log" "package lists"
	in_root apt-cache dumpavail 2>>"$log" |
		python3 "$top/scripts/setup.d/pick_kernel.py" "$series" >"$picked.new" 2>>"$log" ||
		die "Debian $suite-backports offers no complete kernel (image, modules, headers, kbuild and source of one version) at the moment: try again in a few hours, while its packages are being replaced."
	mv "$picked.new" "$picked"
}

# Fetches PACKAGES at the picked version and unpacks them into the folder $1.
unpack_packages() {
	local into=$1 log=$cache/log/packages.log debs=$cache/debs-$version name
	shift
	need_free 4 "the kernel tree"
	rm -rf "$into.new"
	mkdir -p "$debs" "$into.new"
	cp /etc/resolv.conf "$(root_dir)/etc/resolv.conf"
	in_root "BIND=$debs:/out" sh -c '
		cd /out
		[ -n "$(ls -A /var/lib/apt/lists 2>/dev/null)" ] || apt-get -o APT::Sandbox::User=root -q update
		exec apt-get -o APT::Sandbox::User=root -q download "$@"' sh \
		"${@/%/=$version}" >"$log" 2>&1 || explain "$log" "kernel packages"
	for name in "$@"; do
		in_root "BIND=$debs:/out" "BIND=$into.new:/kernel" sh -c \
			'exec dpkg-deb -x /out/"$1"_*.deb /kernel' sh "$name" >>"$log" 2>&1 ||
			explain "$log" "kernel packages"
	done
	rm -rf "$debs"
}

fetch_packages() {
	local into=$kernel_home/pkg log=$cache/log/packages.log
	# shellcheck disable=SC2086
	unpack_packages "$into" ${packages/$source_package/}
	in_root "BIND=$into.new:/kernel" depmod -b /kernel/usr "$release" >>"$log" 2>&1 ||
		explain "$log" "kernel packages"
	ln -s usr/lib "$into.new/lib"
	mv "$into.new" "$into"
}

fetch_source() {
	local into=$src_dir log=$cache/log/source.log
	unpack_packages "$into.deb" "$source_package"
	rm -rf "$into.new"
	mkdir "$into.new"
	tar -C "$into.new" --strip-components=1 -xJf \
		"$into.deb.new/usr/src/$source_package.tar.xz" >"$log" 2>&1 ||
		explain "$log" "kernel source"
	rm -rf "$into.deb.new"
	mv "$into.new" "$into"
}

# Runs make in the kernel's build tree at $1.
kernel_make() {
	local tree=$1
	shift
	# shellcheck disable=SC2046
	in_root "BIND=$src_dir:/kernel/src" "BIND=$tree:/kernel/build" \
		nice make -C /kernel/src O=/kernel/build $(kbuild_args) "-j$(nproc)" "$@"
}

make_tree() {
	local tree=$build_dir.new log=$cache/log/tree.log
	local headers=$kernel_home/pkg/usr/src/linux-headers-$release
	rm -rf "$tree"
	mkdir -p "$tree"
	cp "$headers/.config" "$tree/.config"
	kernel_make "$tree" olddefconfig >"$log" 2>&1 || explain "$log" "kernel configuration"
	diff <(grep -v '^#' "$headers/.config") <(grep -v '^#' "$tree/.config") >>"$log" ||
		die "The kernel's configuration changed when it was read back, so a module built from it would not load: the compilers in the build root differ from those Debian used (the differences are at the end of $log)."
	kernel_make "$tree" prepare modules_prepare >>"$log" 2>&1 || explain "$log" "kernel tree"
	cp "$headers/Module.symvers" "$tree/Module.symvers"
	check_symbols "$tree"
	mv "$tree" "$build_dir"
}

# The names of Rust symbols contain a hash of the crates they are from: equal
# names mean that the crates built here are those inside the packaged kernel.
check_symbols() {
	local tree=$1 ours all theirs differ symbols
	ours=$(sed -n 's/^EXPORT_SYMBOL_RUST_GPL(\(.*\));$/\1/p' "$tree"/rust/exports_*_generated.h | sort -u)
	all=$(awk -F'\t' '$3 == "vmlinux" { print $2 }' "$tree/Module.symvers" | sort -u)
	theirs=$(grep -E '^(_R|rust_helper_)' <<<"$all")
	symbols=$(wc -l <<<"$theirs")
	differ=$(($(comm -23 <(echo "$ours") <(echo "$all") | wc -l) + \
		$(comm -13 <(echo "$ours") <(echo "$theirs") | wc -l)))
	[ "$differ" -eq 0 ] ||
		die "$differ of the $symbols Rust symbols of the packaged kernel differ from those rebuilt from $source_package, so a Rust module built here would not load: rustc in Debian $suite is probably newer than the one the kernel was packaged with; run 'scripts/setup --update' when a newer kernel package is out."
}

make_initramfs() {
	local log=$cache/log/initramfs.log out
	out=$(initramfs_file)
	in_root "BIND=$kernel_home/pkg:/kernel/pkg" "BIND=$top:/src" "BIND=$kernel_home:/out" \
		python3 /src/scripts/setup.d/initramfs.py "/kernel/pkg/lib/modules/$release" \
		/src/selftests/guest/initramfs-init "/out/${out##*/}.new" >"$log" 2>&1 ||
		explain "$log" "initramfs"
	mv "$out.new" "$out"
}

initramfs_file() {
	printf '%s/initramfs-%s.cpio\n' "$kernel_home" "$(hash_of \
		"$(cat "$top/scripts/setup.d/initramfs.py" "$top/selftests/guest/initramfs-init")")"
}
