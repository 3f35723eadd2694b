#pragma once
#include <gsm/gsm.h>
