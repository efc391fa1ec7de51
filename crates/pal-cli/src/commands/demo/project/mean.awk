# The mean height of the tide at each station, in centimetres.
# A reading without a height is a gap.
BEGIN { FS = "," }
FNR > 1 { seen[$1]++ }
FNR > 1 && $3 != "" { sum[$1] += $3 }
END {
    for (station in sum)
        printf "%s %.1f\n", station, sum[station] / seen[station]
}
