# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# Kernels of the project's own, from the source of the packaged one: `reference`
# has C's SMC, `debug` and `kasan` have the kernel's checkers as well. What they
# are made of is in scripts/kernel-config.

# An interrupted build goes on where it was: it is the longest of all steps.
make_own_kernel() {
	local tree=$build_dir.new log=$cache/log/$kind.log teller
	need_free 4 "the $kind kernel"
	mkdir -p "$tree"
	if ! own_config | cmp -s - "$tree/wanted.config" || [ ! -e "$tree/.config" ]; then
		own_config >"$tree/wanted.config"
		kernel_make "$tree" KCONFIG_ALLCONFIG=/kernel/build/wanted.config allnoconfig \
			>"$log" 2>&1 || explain "$log" "configuration of the $kind kernel"
	fi
	check_config "$tree"
	tell_progress "$log" 9>&- &
	teller=$!
	kernel_make "$tree" all >>"$log" 2>&1 || {
		kill "$teller" 2>/dev/null
		explain "$log" "build of the $kind kernel"
	}
	kill "$teller" 2>/dev/null
	# Modules need the tools and tables, not what the kernel was linked from.
	find "$tree" \( -name '*.o' -o -name '*.a' -o -name '.*.cmd' \) \
		! -path "$tree/scripts/*" ! -path "$tree/tools/*" ! -path "$tree/rust/*" -delete
	mv "$tree" "$build_dir"
}

# kconfig drops without a word what cannot be.
check_config() {
	local tree=$1 line name lost=()
	while read -r line; do
		case $line in
		CONFIG_*) grep -qxF "$line" "$tree/.config" || lost+=("$line") ;;
		'# CONFIG_'*)
			name=${line#'# '}
			! grep -q "^${name%% *}=" "$tree/.config" || lost+=("$line")
			;;
		esac
	done <"$tree/wanted.config"
	[ "${#lost[@]}" -eq 0 ] ||
		die "The kernel's configuration refused ${lost[*]}: adapt scripts/kernel-config/$kind.config to this kernel and run the same command again."
}

tell_progress() {
	local start=$SECONDS
	while sleep 60 && kill -0 "$$" 2>/dev/null; do
		quiet='' note "$(printf '%-18s %d files compiled in %d s' "$kind kernel" \
			"$(grep -cE '^  (CC|AS|RUSTC)' "$1")" $((SECONDS - start)))"
	done
}

install_own_kernel() {
	local into=$kernel_home/pkg log=$cache/log/$kind.log
	rm -rf "$into.new"
	mkdir -p "$into.new/usr/lib"
	ln -s usr/lib "$into.new/lib"
	# shellcheck disable=SC2046
	in_root "BIND=$src_dir:/kernel/src" "BIND=$build_dir:/kernel/build" "BIND=$into.new:/kernel/pkg" \
		make -C /kernel/src O=/kernel/build $(kbuild_args) INSTALL_MOD_PATH=/kernel/pkg/usr \
		modules_install >>"$log" 2>&1 || explain "$log" "installation of the $kind kernel"
	rm -f "$into.new/usr/lib/modules/$release/build"
	cp "$build_dir/arch/x86/boot/bzImage" "$into.new/usr/lib/modules/$release/vmlinuz"
	mv "$into.new" "$into"
}
