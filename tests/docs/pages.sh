#!/usr/bin/env bash
# What pages promise: links lead somewhere, the index has every page, and docs/environment.md has every variable that the
# program and the tests read. Usage: pages.sh ROOT_OF_THE_SOURCES
set -euo pipefail
cd "$1"
problems=0
problem() { echo "$*" >&2; problems=1; }

# The targets of a page's links, without those to the web and to places inside a page; C++ has "](" too.
links() { grep -oE '\]\([^)# ]+' "$1" | cut -c3- | grep -E '[./]' | grep -vE '^[a-z]+:' || true; }

for page in README.md CONTRIBUTING.md docs/*.md docs/decisions/*.md; do
  while read -r link; do
    [[ -z $link || -e $(dirname "$page")/$link ]] || problem "$page: there is no $link"
  done < <(links "$page")
done

for page in docs/*.md docs/*/README.md; do
  [[ $page == docs/README.md ]] && continue
  links docs/README.md | grep -qx "${page#docs/}" || problem "docs/README.md: $page is not in the index"
done

while read -r variable; do
  grep -q "\`$variable\`" docs/environment.md || problem "docs/environment.md: $variable is missing"
done < <(grep -rhoE '"TRIREME_[A-Z_]+"|getenv\("[A-Z_]+"|environ(\.get\(|\[)"TRIREME_[A-Z_]+"' \
           --include=*.cpp --include=*.hpp --include=*.py trireme cli tests | grep -oE '[A-Z_]{4,}' | sort -u)
exit $problems
