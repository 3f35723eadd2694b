/// A digit that a `DTMFDetector` heard.
package struct DTMFDetection: Hashable, Sendable, BitwiseCopyable {
    /// How far the digit has come.
    package enum Phase: Hashable, Sendable, BitwiseCopyable {
        /// It is certain which digit it is; it still sounds.
        case began
        /// It is over.
        case ended
    }

    /// The digit.
    package let digit: DTMFDigit
    /// How far it has come.
    ///
    /// Every digit has one `began` and, later, one `ended` with the same start.
    package let phase: Phase
    /// Its first frame, counted from the first frame given to the detector.
    package let startFrame: Int
    /// Its length in frames: so far, or in all.
    ///
    /// Short interruptions inside count as sound.
    package let frameCount: Int
}
