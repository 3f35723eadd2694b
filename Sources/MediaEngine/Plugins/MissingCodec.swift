/// A codec that one could expect and that is not there.
public struct MissingCodec: Hashable, Sendable {
    /// The encoding name: "SILK".
    public let name: String
    /// Why it is not there, in one sentence.
    public let reason: String
    /// What to do about it, in one sentence.
    public let remedy: String

    /// A missing codec with its reason and remedy.
    public init(name: String, reason: String, remedy: String) {
        self.name = name
        self.reason = reason
        self.remedy = remedy
    }
}

extension MissingCodec {
    /// Codecs that people ask for and that a build may lack.
    static let wellKnown = [silk, amr, amrWideband, g729, gsm, h264, isac, ilbc, speex]

    static let silk = MissingCodec(
        name: "SILK",
        reason: "No library of it is left: it lives on inside Opus.",
        remedy: "Use opus."
    )

    static let amr = MissingCodec(
        name: "AMR",
        reason: "This package wraps no library of it.",
        remedy: "Use opus, or load a plugin of your own over libopencore-amrnb."
    )

    static let amrWideband = MissingCodec(
        name: "AMR-WB",
        reason: "This package wraps no library of it.",
        remedy: "Use opus or G722, or load a plugin of your own over libopencore-amrwb and libvo-amrwbenc."
    )

    static let g729 = MissingCodec(
        name: "G729",
        reason: "This build leaves out the package trait G729.",
        remedy: "Install libbcg729-dev and build with --traits default,G729."
    )

    static let gsm = MissingCodec(
        name: "GSM",
        reason: "This build leaves out the package trait GSM.",
        remedy: "Install libgsm1-dev and build with --traits default,GSM."
    )

    static let h264 = MissingCodec(
        name: "H264",
        reason: "This engine has no video.",
        remedy: "Call without video."
    )

    static let isac = MissingCodec(
        name: "iSAC",
        reason: "The WebRTC library that had it has dropped it.",
        remedy: "Use opus."
    )

    static let ilbc = MissingCodec(
        name: "iLBC",
        reason: "This package wraps no library of it.",
        remedy: "Use opus, or load a plugin of your own."
    )

    static let speex = MissingCodec(
        name: "speex",
        reason: "This package wraps no library of it: Opus has replaced it.",
        remedy: "Use opus."
    )
}
