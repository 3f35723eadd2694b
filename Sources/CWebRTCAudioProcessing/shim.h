#pragma once
/* The library is in C++: CWebRTCVoice calls it; this module only finds it. */
