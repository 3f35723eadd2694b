import MediaEngine

/// Sound that is made block by block, without a clock, into a file.
enum RenderedBlocks {
    /// Writes `frameCount` frames, which `render` adds to silence, a block at a time, unless a signal comes before.
    ///
    /// - Returns: The frames that were written.
    static func write(
        _ frameCount: Int,
        to writer: WAVWriter,
        render: (inout MutableSpan<Int16>) -> Void
    ) throws(WAVError) -> Int {
        let channelCount = writer.format.channelCount
        var left = frameCount
        while left > 0, !Interruption.hasCome {
            var block = [Int16](repeating: 0, count: min(left, 1024) * channelCount)
            var samples = block.mutableSpan
            render(&samples)
            try writer.write(block.span)
            left -= block.count / channelCount
        }
        return frameCount - left
    }
}
