/// Something that a `ToneGenerator` did at one frame of a block.
package struct ToneNotice: Hashable, Sendable, BitwiseCopyable {
    /// What was done.
    package enum Kind: Hashable, Sendable, BitwiseCopyable {
        /// A digit's first frame.
        case digitStarted
        /// The frame after a digit's last.
        case digitEnded
        /// A tone's first frame.
        case toneStarted
        /// The frame after a tone's last.
        case toneEnded
    }

    /// What was done.
    package let kind: Kind
    /// The digit, for the two kinds that concern one.
    package let digit: DTMFDigit?
    /// The frame, counted from the first of the block rendered last.
    package let frameOffset: Int
    /// The tag that was given with the digit or tone.
    package let tag: Int64
}
