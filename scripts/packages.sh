# Sourced by scripts/tools and scripts/venv, which may run at the same time: packages of the operating system.
say() { printf 'tools: %s\n' "$*"; }
die() { printf 'tools: %s\n' "$*" >&2; exit 1; }

# installed COMMAND PACKAGE...: makes sure that COMMAND runs, from the first PACKAGE that the system's package manager knows.
installed() {
  local command=$1 package; shift
  command -v "$command" >/dev/null 2>&1 && return
  command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ] ||
    die "'$command' is missing and cannot be installed here (needs apt-get and root). Install the package '$1' and run again."
  mkdir -p .tools
  exec 8>.tools/.packages.lock
  flock 8   # apt-get itself does not wait for another one
  [ -n "${apt_updated:-}" ] || { apt-get -qq update >/dev/null; apt_updated=1; }
  for package; do
    say "installing $package for '$command'"
    DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "$package" 8>&- >/dev/null 2>&1 && { exec 8>&-; return; }
  done
  die "apt-get could install none of: $*"
}
