dnl SPDX-License-Identifier: BSD-3-Clause
# HIER_CMOCKA
# CMocka, for the unit and model tests alone: CMOCKA_CPPFLAGS, CMOCKA_LIBS and the conditional HAVE_CMOCKA.
AC_DEFUN([HIER_CMOCKA], [
    hier_cmocka_wanted=$with_cmocka
    HIER_LIBRARY([cmocka], [CMocka], [cmocka.h], [cmocka], [], [cmocka],
        [[#include <setjmp.h>
          #include <stdarg.h>
          #include <stddef.h>
          #include <stdint.h>
          #include <cmocka.h>]],
        [[return cmocka_run_group_tests_name("none", (const struct CMUnitTest *) 0, 0, 0);]])
    AS_IF([test "$hier_cmocka_wanted" = yes && test "$hier_cmocka" = no],
        [AC_MSG_ERROR([CMocka is missing: install the Debian package libcmocka-dev, or give its place by --with-cmocka=DIR])])
    hier_cmocka_summary=found
    AS_IF([test "$hier_cmocka" = no], [hier_cmocka_summary="missing: make check needs it (Debian package libcmocka-dev)"])
    AM_CONDITIONAL([HAVE_CMOCKA], [test "$hier_cmocka" = yes])
])
