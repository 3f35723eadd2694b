// The init functions that applications call by these names. Swift sees them through ms_plugin.h; here they have other
// names, so that the two never compete.

@_cdecl("libmssilk_init")
func initializeSILKStub(_ registry: OpaquePointer?) {
    note(.silk, in: registry)
}

@_cdecl("libmsamr_init")
func initializeAMRStub(_ registry: OpaquePointer?) {
    note(.amr, in: registry)
    note(.amrWideband, in: registry)
}

@_cdecl("libmsx264_init")
func initializeX264Stub(_ registry: OpaquePointer?) {
    note(.h264, in: registry)
}

@_cdecl("libmsopenh264_init")
func initializeOpenH264Stub(_ registry: OpaquePointer?) {
    note(.h264, in: registry)
}

/// Registers WebRTC's voice processing where the package trait WebRTC is on; iSAC is gone from its library.
@_cdecl("libmswebrtc_init")
func initializeWebRTC(_ registry: OpaquePointer?) {
    #if WebRTC
    CPluginSession.at(registry)?.add(WebRTCVoiceProcessing())
    #endif
    note(.isac, in: registry)
}

/// Registers G.729 where the package trait G729 is on; else notes that it is not in this build.
@_cdecl("libmsbcg729_init")
func initializeG729(_ registry: OpaquePointer?) {
    #if G729
    CPluginSession.at(registry)?.add(G729Codec())
    #else
    note(.g729, in: registry)
    #endif
}

private func note(_ codec: MissingCodec, in registry: OpaquePointer?) {
    CPluginSession.at(registry)?.noteMissing(codec)
}
