dnl SPDX-License-Identifier: BSD-3-Clause
# HIER_OMPI
# Open MPI with its internal headers. Sets
#   OMPI_CPPFLAGS        for the component: mpi.h and the internal headers, as system headers
#   OMPI_LIBS            for the component
#   MPI_CPPFLAGS         for MPI programs: mpi.h alone
#   MPI_LIBS             for MPI programs
#   OMPI_BINDIR          where its mpirun is
#   OMPI_COMPONENT_DIR   where it keeps its own components
#   HIER_COMPONENT_DIR   where make install puts ours
AC_DEFUN([HIER_OMPI], [
    AC_ARG_WITH([ompi],
        [AS_HELP_STRING([--with-ompi=DIR], [Open MPI is installed in DIR (default: the mpicc in PATH)])],
        [], [with_ompi=yes])
    HIER_OMPI_WRAPPER
    HIER_OMPI_FLAGS
    HIER_OMPI_HEADERS
    HIER_MPI_LARGE_COUNTS
    HIER_OMPI_COMPONENT_DIR
    HIER_INSTALL_DIR
])

# HIER_OMPI_WRAPPER
# MPICC: Open MPI's compiler wrapper, which knows where everything is. Another MPI may own the name mpicc.
AC_DEFUN([HIER_OMPI_WRAPPER], [
    AC_MSG_CHECKING([for Open MPI's mpicc])
    MPICC=
    hier_other_mpicc=
    AS_CASE([$with_ompi],
        [yes], [hier_candidates=`command -v mpicc; command -v mpicc.openmpi`],
        [no], [AC_MSG_RESULT([no])
               AC_MSG_ERROR([--without-ompi: the component is a part of Open MPI and cannot be built without it])],
        [hier_candidates="$with_ompi/bin/mpicc $with_ompi/bin/mpicc.openmpi"])
    for hier_mpicc in $hier_candidates; do
        AS_CASE([`"$hier_mpicc" --showme:version 2>/dev/null`],
            [*"Open MPI"*], [MPICC=$hier_mpicc; break],
            [AS_IF([test -x "$hier_mpicc"], [hier_other_mpicc=$hier_mpicc])])
    done
    AC_MSG_RESULT([${MPICC:-no}])
    AS_IF([test -z "$MPICC" && test "$with_ompi" != yes],
        [AC_MSG_ERROR([--with-ompi=$with_ompi: there is no mpicc of Open MPI in $with_ompi/bin])])
    AS_IF([test -z "$MPICC" && test -n "$hier_other_mpicc"],
        [AC_MSG_ERROR([$hier_other_mpicc is not Open MPI's: install the Debian package libopenmpi-dev, or give Open MPI's place by --with-ompi=DIR])])
    AS_IF([test -z "$MPICC"],
        [AC_MSG_ERROR([Open MPI is missing: install the Debian packages openmpi-bin and libopenmpi-dev, or give its place by --with-ompi=DIR])])
    OMPI_BINDIR=`AS_DIRNAME(["$MPICC"])`
    AC_SUBST([OMPI_BINDIR])
])

# HIER_OMPI_FLAGS
# As system headers, because their own warnings are not ours to mend.
AC_DEFUN([HIER_OMPI_FLAGS], [
    hier_ompi_version=`"$MPICC" --showme:version | $SED -n 's/.*Open MPI \(@<:@^ @:>@*\).*/\1/p'`
    MPI_CPPFLAGS="-DOMPI_SKIP_MPICXX=1"
    OMPI_CPPFLAGS=
    hier_ompi_internal=no
    hier_ompi_incdirs=`"$MPICC" --showme:incdirs`
    for hier_dir in $hier_ompi_incdirs; do
        MPI_CPPFLAGS="$MPI_CPPFLAGS -isystem $hier_dir"
        OMPI_CPPFLAGS="$OMPI_CPPFLAGS -isystem $hier_dir"
        AS_IF([test -e "$hier_dir/openmpi/ompi_config.h"], [OMPI_CPPFLAGS="$OMPI_CPPFLAGS -isystem $hier_dir/openmpi"])
        AS_IF([test -e "$hier_dir/ompi/mca/coll/coll.h" || test -e "$hier_dir/openmpi/ompi/mca/coll/coll.h"],
            [hier_ompi_internal=yes])
    done
    MPI_LIBS=`"$MPICC" --showme:link`
    OMPI_LIBS="$MPI_LIBS -lopen-pal"
    AC_SUBST([MPI_CPPFLAGS])
    AC_SUBST([MPI_LIBS])
    AC_SUBST([OMPI_CPPFLAGS])
    AC_SUBST([OMPI_LIBS])
])

# HIER_OMPI_HEADERS
# The internal headers compile and link, and which interface of the coll framework they define. Some include headers
# that Open MPI does not install, and those of 5.0 and 6.0 include PMIx's. Where Open MPI has brought a PMIx along, another
# one on this machine must not take its place.
AC_DEFUN([HIER_OMPI_HEADERS], [
    hier_saved_CPPFLAGS=$CPPFLAGS
    hier_saved_LIBS=$LIBS
    LIBS="$OMPI_LIBS $LIBS"
    hier_pmix=`"${PKG_CONFIG:-pkg-config}" --cflags pmix 2>/dev/null | $SED 's/^-I/-isystem /; s/ -I/ -isystem /g'`
    hier_missing="-idirafter `cd "$srcdir" && pwd`/ompi_coll_hier/not_installed"
    m4_define([hier_ompi_includes],
        [[#include "ompi_config.h"
          #include "mpi.h"
          #include "ompi/communicator/communicator.h"
          #include "ompi/mca/coll/base/base.h"
          #include "ompi/mca/coll/base/coll_base_util.h"
          #include "ompi/mca/coll/coll.h"
          #include "opal/mca/base/mca_base_pvar.h"
          #include "opal/runtime/opal_progress.h"
          #if OMPI_MAJOR_VERSION > 4
          #include "opal/mca/pmix/pmix-internal.h"
          #endif]])

    AC_MSG_CHECKING([for the internal headers of Open MPI $hier_ompi_version])
    hier_ompi_headers=no
    for hier_more in "" "$hier_missing" "$hier_missing $hier_pmix"; do
        AS_IF([test $hier_ompi_headers = no],
            [CPPFLAGS="$hier_saved_CPPFLAGS $OMPI_CPPFLAGS $hier_more"
             AC_LINK_IFELSE([AC_LANG_PROGRAM([hier_ompi_includes],
                    [[opal_progress();
                      return (int) sizeof(mca_coll_base_component_t) + (int) ompi_mpi_comm_world.comm.c_my_rank;]])],
                [hier_ompi_headers=yes; OMPI_CPPFLAGS="$OMPI_CPPFLAGS $hier_more"])])
    done
    AC_MSG_RESULT([$hier_ompi_headers])
    # The modex of 5.0 and 6.0 is PMIx itself, which Open MPI has brought along or found.
    hier_pmix_libs=no
    for hier_more in "" -lpmix "`"${PKG_CONFIG:-pkg-config}" --libs pmix 2>/dev/null`"; do
        AS_IF([test "$hier_pmix_libs" = no],
            [LIBS="$OMPI_LIBS $hier_more $hier_saved_LIBS"
             AC_LINK_IFELSE([AC_LANG_PROGRAM([hier_ompi_includes], [[
#if OMPI_MAJOR_VERSION > 4
                      return PMIx_Commit();
#endif
                ]])],
                [hier_pmix_libs=$hier_more])])
    done
    AS_IF([test "$hier_pmix_libs" = no], [hier_pmix_libs=-lpmix])
    OMPI_LIBS="$OMPI_LIBS $hier_pmix_libs"
    AS_IF([test $hier_ompi_headers = no],
        [AC_COMPILE_IFELSE([AC_LANG_SOURCE([[#include <pmix.h>]])], [hier_pmix_header=yes], [hier_pmix_header=no])
         AS_CASE([$hier_ompi_internal:$hier_ompi_version:$hier_pmix_header],
            [yes:4.*], [],
            [yes:*:no], [AC_MSG_ERROR([the internal headers of Open MPI $hier_ompi_version ($MPICC) include pmix.h, which is missing: install the Debian package libpmix-dev, or give its place by CPPFLAGS])])
         AS_IF([test "$hier_ompi_internal" = yes],
            [AC_MSG_ERROR([the internal headers of Open MPI $hier_ompi_version ($MPICC) do not compile and link; the end of config.log says why])],
            [AC_MSG_ERROR([Open MPI $hier_ompi_version ($MPICC) has no internal headers such as ompi/mca/coll/coll.h: install the Debian package libopenmpi-dev, or configure Open MPI with --with-devel-headers and give its place by --with-ompi=DIR])])])

    AC_MSG_CHECKING([for the interface of the coll framework])
    hier_ompi_coll_version=
    m4_foreach([hier_version], [[3_0_0], [2_4_0], [2_0_0]], [
        AS_IF([test -z "$hier_ompi_coll_version"],
            [AC_COMPILE_IFELSE([AC_LANG_SOURCE([
#include "ompi_config.h"
#include "ompi/mca/coll/coll.h"
#ifndef MCA_COLL_BASE_VERSION_]hier_version[
#error another interface
#endif
])],
                [hier_ompi_coll_version=]hier_version)])])
    CPPFLAGS=$hier_saved_CPPFLAGS
    LIBS=$hier_saved_LIBS
    AC_MSG_RESULT([${hier_ompi_coll_version:-unknown}])
    AS_IF([test -z "$hier_ompi_coll_version"],
        [AC_MSG_ERROR([Open MPI $hier_ompi_version ($MPICC) has a coll interface that is not known here: 4.1 (2_0_0), 5.0 (2_4_0) and 6.0 (3_0_0) are])])
])

# HIER_MPI_LARGE_COUNTS
# MPI 4 has calls with counts of 64 bits. Tests make them where they are there.
AC_DEFUN([HIER_MPI_LARGE_COUNTS], [
    AC_MSG_CHECKING([for calls with counts of 64 bits])
    hier_saved_CPPFLAGS=$CPPFLAGS
    hier_saved_LIBS=$LIBS
    CPPFLAGS="$CPPFLAGS $MPI_CPPFLAGS"
    LIBS="$MPI_LIBS $LIBS"
    AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <mpi.h>]],
            [[return MPI_Allgather_c(0, 0, MPI_BYTE, 0, 0, MPI_BYTE, MPI_COMM_WORLD) +
                     MPI_Allgatherv_init_c(0, 0, MPI_BYTE, 0, 0, 0, MPI_BYTE, MPI_COMM_WORLD, MPI_INFO_NULL, 0);]])],
        [AC_MSG_RESULT([yes])
         MPI_CPPFLAGS="$MPI_CPPFLAGS -DHIER_HAS_LARGE_COUNTS=1"],
        [AC_MSG_RESULT([no])])
    CPPFLAGS=$hier_saved_CPPFLAGS
    LIBS=$hier_saved_LIBS
])

# HIER_OMPI_COMPONENT_DIR
# Distributions move the directory (openmpi3 on Debian), so ask. The answer lists several directories and follows the
# environment and the user's own settings: take the first that holds coll components.
AC_DEFUN([HIER_OMPI_COMPONENT_DIR], [
    AC_MSG_CHECKING([where Open MPI keeps its components])
    hier_ompi_info=$OMPI_BINDIR/ompi_info
    AS_IF([test ! -x "$hier_ompi_info"], [hier_ompi_info=`command -v ompi_info`])
    AS_IF([test -z "$hier_ompi_info"],
        [AC_MSG_RESULT([unknown])
         AC_MSG_ERROR([ompi_info is missing: install the Debian package openmpi-bin, or give Open MPI's place by --with-ompi=DIR])])
    hier_component_path=`unset OMPI_MCA_mca_base_component_path OMPI_MCA_mca_component_path
        "$hier_ompi_info" --parsable --param mca base --level 9 2>/dev/null |
        $SED -n 's/"//g; s/^mca:mca:base:param:mca_base_component_path:value://p'`
    OMPI_COMPONENT_DIR=
    hier_saved_IFS=$IFS; IFS=:
    for hier_dir in $hier_component_path; do
        IFS=$hier_saved_IFS
        AS_IF([test -z "$OMPI_COMPONENT_DIR" && test -e "$hier_dir/mca_coll_basic.so"], [OMPI_COMPONENT_DIR=$hier_dir])
    done
    IFS=$hier_saved_IFS
    # A static build of the stock components leaves the directory empty or missing; it is still the place.
    AS_IF([test -z "$OMPI_COMPONENT_DIR"], [OMPI_COMPONENT_DIR=`echo "$hier_component_path" | cut -d: -f1`])
    AC_MSG_RESULT([${OMPI_COMPONENT_DIR:-unknown}])
    AS_IF([test -z "$OMPI_COMPONENT_DIR"],
        [AC_MSG_ERROR([$hier_ompi_info names no mca_base_component_path: does it run? (ompi_info --param mca base --level 9)])])
    hier_ompi_prefix=`"$hier_ompi_info" --parsable --path prefix 2>/dev/null | $SED -n 's/^path:prefix://p'`
    hier_ompi_prefix=${hier_ompi_prefix:-$OMPI_BINDIR}
    AC_SUBST([OMPI_COMPONENT_DIR])
])

# HIER_PMIX_COMPONENT_DIR
# Where PMIx's own parameters (Debian 13's do) have it look for components, its launcher tells every process so, Open
# MPI's own as well, which then finds nothing that was installed for it. PMIX_COMPONENT_DIR is that place, or empty.
AC_DEFUN([HIER_PMIX_COMPONENT_DIR], [
    AC_MSG_CHECKING([whether PMIx's parameters hide Open MPI's components])
    PMIX_COMPONENT_DIR=
    hier_multiarch=`$CC -print-multiarch 2>/dev/null`
    AS_CASE([$hier_ompi_version:$OMPI_COMPONENT_DIR], [4.*], [], [*:/usr/lib/*], [
        for hier_file in "/usr/lib/$hier_multiarch/pmix2/share/pmix-mca-params.conf" "/usr/lib/$hier_multiarch/pmix2/etc/pmix-mca-params.conf" /etc/pmix-mca-params.conf; do
            AS_IF([test -z "$PMIX_COMPONENT_DIR" && test -r "$hier_file"],
                [PMIX_COMPONENT_DIR=`$SED -n 's/^@<:@@<:@:space:@:>@@:>@*mca_base_component_path@<:@@<:@:space:@:>@@:>@*=@<:@@<:@:space:@:>@@:>@*//p' "$hier_file" | tail -n 1`])
        done])
    AS_IF([test -n "$PMIX_COMPONENT_DIR"], [AC_MSG_RESULT([yes])], [AC_MSG_RESULT([no])])
])

# HIER_INSTALL_DIR
# Without --prefix: where that Open MPI looks. A --prefix is a promise to install nothing outside it (packagers,
# distcheck and users without root rely on that), so Open MPI's directory is taken only where it is inside.
AC_DEFUN([HIER_INSTALL_DIR], [
    AC_ARG_WITH([component-dir],
        [AS_HELP_STRING([--with-component-dir=DIR],
            [install the component in DIR (default: Open MPI's own component directory, or LIBDIR/openmpi if --prefix is given and Open MPI is not inside it)])],
        [], [with_component_dir=yes])
    AS_CASE([$with_component_dir],
        [yes],
            [AS_CASE([$prefix:$OMPI_COMPONENT_DIR/],
                [NONE:*], [HIER_COMPONENT_DIR=$OMPI_COMPONENT_DIR],
                ["$prefix:$prefix/"*], [HIER_COMPONENT_DIR=$OMPI_COMPONENT_DIR],
                [HIER_COMPONENT_DIR='${libdir}/openmpi'])],
        [/*], [HIER_COMPONENT_DIR=$with_component_dir],
        [AC_MSG_ERROR([--with-component-dir=$with_component_dir: give an absolute directory])])
    AC_SUBST([HIER_COMPONENT_DIR])

    hier_component_dir_found_by_ompi=no
    AS_IF([test "$HIER_COMPONENT_DIR" = "$OMPI_COMPONENT_DIR"], [hier_component_dir_found_by_ompi=yes])
    hier_component_dir_shown=$HIER_COMPONENT_DIR
    AS_IF([test "$HIER_COMPONENT_DIR" = '${libdir}/openmpi'], [hier_component_dir_shown=$prefix/lib/openmpi])
])
