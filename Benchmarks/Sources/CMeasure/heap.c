#include "CMeasure.h"
#include <malloc.h>

int64_t measure_heap(void) {
    struct mallinfo2 info = mallinfo2();
    return (int64_t)(info.uordblks + info.hblkhd);
}
