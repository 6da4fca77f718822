# SPDX-License-Identifier: BSD-3-Clause
# Reads valgrind's XML reports and prints the errors that have a frame in the component. Fails if there are any.
# A use of undefined bytes counts only if the innermost frame is the component's. Padding bytes of the application that
# the component hands on are no error.
FNR == 1 { reports++ }
/<error>/ { inside = 1; text = ""; kind = ""; frames = 0; ours = 0; innermost = 0 }
inside && /<kind>/ { kind = $0; gsub(/.*<kind>|<\/kind>.*/, "", kind) }
inside && /<what>|<text>/ { what = $0; gsub(/ *<[^>]*>/, "", what); text = text "# " what "\n" }
inside && /<frame>/ { frames++; fn = ""; obj = ""; file = ""; line = "" }
inside && /<obj>/ {
    obj = $0; gsub(/.*<obj>|<\/obj>.*/, "", obj)
    if (obj ~ /\/mca_coll_hier[^\/]*\.so/) { ours = 1; if (frames == 1) innermost = 1 }
}
inside && /<fn>/ { fn = $0; gsub(/.*<fn>|<\/fn>.*/, "", fn) }
inside && /<file>/ { file = $0; gsub(/.*<file>|<\/file>.*/, "", file) }
inside && /<line>/ { line = $0; gsub(/.*<line>|<\/line>.*/, "", line) }
inside && /<\/frame>/ { sub(/.*\//, "", obj); text = text "#     " fn " " file ":" line " (" obj ")\n" }
/<\/error>/ {
    undefined = kind ~ /^Uninit|^SyscallParam/
    if (ours && kind !~ /^Leak_/ && (!undefined || (innermost && kind !~ /^Syscall/))) {
        printf "# %s: %s\n%s", FILENAME, kind, text
        bad++
    }
    inside = 0
}
END {
    printf "# valgrind: %d reports, %d errors with a frame in the component\n", reports, bad
    exit bad > 0 || reports == 0
}
