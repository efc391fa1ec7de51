#!/bin/sh
# Checks every reading, then the mean of every station against what it should be.
cd "$(dirname "$0")" || exit 1
failed=0
awk -F, 'FNR > 1 {
    state = ($3 == "") ? "gap" : ($3 > 0 && $3 < 900) ? "ok" : "out of range"
    printf "check reading %s at %s ... %s\n", $1, $2, state
}' data/*.csv
awk -f src/mean.awk data/*.csv > means.tmp
while read -r station want; do
    got=$(awk -v station="$station" '$1 == station { print $2 }' means.tmp)
    if [ "$got" = "$want" ]; then
        echo "check mean of $station ... ok"
    else
        echo "error: mean of $station is $got, should be $want"
        failed=1
    fi
done < expected.txt
rm -f means.tmp
if [ "$failed" = 1 ]; then
    echo "test failed"
    exit 1
fi
echo "test passed"
