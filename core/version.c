#include <lattn/lattn.h>

#define TEXT_OF(number) #number
#define TEXT(number) TEXT_OF(number)

const char *lattn_version_string(void)
{
    return TEXT(LATTN_VERSION_MAJOR) "." TEXT(LATTN_VERSION_MINOR) "." TEXT(LATTN_VERSION_PATCH);
}
