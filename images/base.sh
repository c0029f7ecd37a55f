#!/bin/sh
# A base image from distribution packages, for places where no registry can be reached: base.sh OUT.tar
#
# Uses mmdebstrap with this machine's own release, mirrors and apt settings, so that whatever makes apt work here
# (proxy, TLS bundle) makes it work for the base. About 20 s. `talos-orch build` imports the archive.
set -eu

out=$1
# shellcheck source=/dev/null
. /etc/os-release
: "${VERSION_CODENAME:?this distribution names no release: build the base elsewhere and load it}"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
apt-config dump Acquire | grep -iE '^Acquire::(https?::(Proxy|CaInfo|CaPath|Verify|[^ ]*::Proxy)|Retries|ForceIPv4)' \
    >"$work/apt.conf" || true

# Only the distribution's own lists: third-party ones may need keys and add nothing.
set --
for list in /etc/apt/sources.list "/etc/apt/sources.list.d/$ID.sources"; do
    if [ -f "$list" ] && grep -qE '^(deb|URIs:)' "$list"; then
        set -- "$@" "$list"
    fi
done

# git alone, out of its package: see install.sh. The download runs outside of the new root, with this machine's TLS.
cat >"$work/hook" <<'HOOK'
#!/bin/sh
set -eu
cd "$(mktemp -d)"
APT_CONFIG=$MMDEBSTRAP_APT_CONFIG apt-get -o APT::Sandbox::User=root download -qq git
dpkg-deb -x git_*.deb unpacked
install -m 755 unpacked/usr/bin/git "$1/usr/bin/git"
rm -r "$PWD"
rm -f "$1/etc/apt/apt.conf.d/99mmdebstrap"
chroot "$1" git --version
HOOK
chmod +x "$work/hook"

mmdebstrap --quiet --variant=minbase --include=python3,python3-venv,ca-certificates,libpcre2-8-0,zlib1g \
    --aptopt="$work/apt.conf" \
    --dpkgopt='path-exclude=/usr/share/man/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' \
    --dpkgopt='path-exclude=/usr/share/doc/*' \
    --dpkgopt='path-include=/usr/share/doc/*/copyright' \
    --customize-hook="$work/hook" \
    "$VERSION_CODENAME" "$out" "$@"
