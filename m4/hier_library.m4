dnl SPDX-License-Identifier: BSD-3-Clause
# HIER_LIBRARY(NAME, Title, header, library, other -l flags, pkg-config module, prologue, body)
# Looks for a C library: in DIR alone with --with-NAME=DIR, else where pkg-config says, else on the compiler's own paths.
# Sets hier_NAME (yes or no) and NAME_CPPFLAGS, NAME_LIBS (NAME in capitals). A DIR that was given and does not do is an
# error here; what absence means otherwise is the caller's to say. pkg-config is asked for the place only, so that a
# machine without it can build.
AC_DEFUN([HIER_LIBRARY], [
    m4_pushdef([hier_var], m4_toupper([$1]))
    AC_ARG_WITH([$1],
        [AS_HELP_STRING([--with-$1=DIR], [$2 is installed in DIR (default: ask pkg-config, then the compiler)])],
        [], [with_$1=yes])
    hier_$1=no
    hier_var[]_CPPFLAGS=
    hier_var[]_LIBS="-l$4 $5"
    AC_MSG_CHECKING([for $2])
    AS_CASE([$with_$1],
        [no], [],
        [yes],
            [AS_IF([test -n "$PKG_CONFIG" && "$PKG_CONFIG" --exists $6 2>/dev/null],
                [hier_var[]_CPPFLAGS=`"$PKG_CONFIG" --cflags $6`
                 hier_var[]_LIBS="`"$PKG_CONFIG" --libs-only-L $6` -l$4 $5"])
             HIER_TRY_LIBRARY([$1], hier_var, [$7], [$8])],
        [HIER_LIBRARY_AT([$1], hier_var, [$2], [$3], [$4])
         HIER_TRY_LIBRARY([$1], hier_var, [$7], [$8])
         AS_IF([test "$hier_$1" = no],
            [AC_MSG_RESULT([no])
             AC_MSG_ERROR([--with-$1=$with_$1: a program does not compile and link with the $2 there; the end of config.log says why])])])
    AC_MSG_RESULT([$hier_$1])
    AC_SUBST(hier_var[_CPPFLAGS])
    AC_SUBST(hier_var[_LIBS])
    m4_popdef([hier_var])
])

# HIER_LIBRARY_AT(name, VAR, Title, header, library)
# The flags for --with-name=DIR. The files are looked at first: the compiler would take the system's own where DIR
# has none, and /usr must not become a -isystem (it would hide the C++ library's wrappers of C headers).
AC_DEFUN([HIER_LIBRARY_AT], [
    hier_libdir=
    for hier_dir in lib lib64 "lib/`$CC -print-multiarch 2>/dev/null`"; do
        AS_IF([test -z "$hier_libdir" && { test -e "$with_$1/$hier_dir/lib$5.so" || test -e "$with_$1/$hier_dir/lib$5.a"; }],
            [hier_libdir=$with_$1/$hier_dir])
    done
    AS_IF([test ! -e "$with_$1/include/$4" || test -z "$hier_libdir"],
        [AC_MSG_RESULT([no])
         AC_MSG_ERROR([--with-$1=$with_$1: there is no $3 in $with_$1 (looked for include/$4 and lib$5 in lib and lib64)])])
    AS_IF([test "$with_$1" != /usr],
        [$2_CPPFLAGS="-isystem $with_$1/include"
         $2_LIBS="-L$hier_libdir -Wl,-rpath,$hier_libdir $$2_LIBS"])
])

# HIER_TRY_LIBRARY(name, VAR, prologue, body)
AC_DEFUN([HIER_TRY_LIBRARY], [
    hier_saved_CPPFLAGS=$CPPFLAGS
    hier_saved_LIBS=$LIBS
    CPPFLAGS="$CPPFLAGS $$2_CPPFLAGS"
    LIBS="$$2_LIBS $LIBS"
    AC_LINK_IFELSE([AC_LANG_PROGRAM([$3], [$4])], [hier_$1=yes], [hier_$1=no])
    CPPFLAGS=$hier_saved_CPPFLAGS
    LIBS=$hier_saved_LIBS
])

# HIER_COMPUTE_INT(variable, expression, prologue, CPPFLAGS)
# Like AC_COMPUTE_INT, with extra flags; 0 where the expression does not compile.
AC_DEFUN([HIER_COMPUTE_INT], [
    hier_saved_CPPFLAGS=$CPPFLAGS
    CPPFLAGS="$CPPFLAGS $4"
    AC_COMPUTE_INT([$1], [$2], [$3], [$1=0])
    CPPFLAGS=$hier_saved_CPPFLAGS
])
