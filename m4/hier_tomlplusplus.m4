dnl SPDX-License-Identifier: BSD-3-Clause
# HIER_TOMLPLUSPLUS
# toml++, a library of headers, which reads tuning files: TOMLPLUSPLUS_CPPFLAGS.
AC_DEFUN([HIER_TOMLPLUSPLUS], [
    AC_ARG_WITH([tomlplusplus],
        [AS_HELP_STRING([--with-tomlplusplus=DIR], [toml++ is installed in DIR (default: where the compiler finds it)])],
        [], [with_tomlplusplus=yes])
    TOMLPLUSPLUS_CPPFLAGS=
    AS_CASE([$with_tomlplusplus],
        [no], [AC_MSG_ERROR([--without-tomlplusplus: toml++ reads tuning files and cannot be left out])],
        [yes | /usr], [],
        [TOMLPLUSPLUS_CPPFLAGS="-isystem $with_tomlplusplus/include"])
    AC_LANG_PUSH([C++])
    hier_saved_CPPFLAGS=$CPPFLAGS
    CPPFLAGS="$CPPFLAGS $HIER_CXX_STANDARD $TOMLPLUSPLUS_CPPFLAGS"
    AC_MSG_CHECKING([for toml++])
    AC_PREPROC_IFELSE([AC_LANG_SOURCE([[#include <toml++/toml.h>]])], [hier_tomlplusplus=yes], [hier_tomlplusplus=no])
    AC_MSG_RESULT([$hier_tomlplusplus])
    CPPFLAGS=$hier_saved_CPPFLAGS
    AC_LANG_POP([C++])
    AS_IF([test "$hier_tomlplusplus" = no],
        [AC_MSG_ERROR([toml++ is missing: install the Debian package libtomlplusplus-dev, or give its place by --with-tomlplusplus=DIR])])
    AC_SUBST([TOMLPLUSPLUS_CPPFLAGS])
])
