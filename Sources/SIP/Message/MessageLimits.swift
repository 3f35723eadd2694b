/// What is more than this is refused, before memory is taken for it.
package enum MessageLimits {
    package static let byteCount = 65_536
    package static let lineCount = 128
    /// Of one header line, and of the Request-URI.
    package static let valueByteCount = 16_384
    /// In one header line.
    package static let listCount = 64
    /// Of a message, where a line with several values counts as several.
    package static let fieldCount = 512
    /// Behind one value, and headers in one URI.
    package static let parameterCount = 32
    /// Of a body, and how many are within each other.
    package static let (partCount, partDepth) = (16, 4)
}
