public import CallBasics

/// A short WAV file as a whole: for tests, prompts and test signals.
public enum WAVFile {
    /// Reads all of the file at `path`.
    ///
    /// Thread: it blocks while the file is read.
    /// - Parameters:
    ///   - path: Where the file is.
    ///   - limit: The most samples that are kept in memory.
    /// - Returns: The format and the interleaved samples.
    /// - Throws: `WAVError` when the file cannot be read or holds more than `limit` samples.
    public static func read(_ path: String, limit: Int = 64 << 20) throws(WAVError) -> (AudioFormat, [Int16]) {
        let reader = try WAVReader(path: path)
        return (reader.format, try readAll(reader, limit: limit, name: path))
    }

    /// Writes `samples` to the file at `path`.
    ///
    /// - Throws: `WAVError` when the file cannot be written.
    package static func write(_ path: String, format: AudioFormat, samples: [Int16]) throws(WAVError) {
        let writer = try WAVWriter(path: path, format: format)
        try writer.write(samples.span)
        try writer.close()
    }

    static func readAll(_ reader: WAVReader, limit: Int, name: String) throws(WAVError) -> [Int16] {
        var samples: [Int16] = []
        let channelCount = reader.format.channelCount
        var block = [Int16](repeating: 0, count: 4096 / channelCount * channelCount)
        while true {
            var target = block.mutableSpan
            let count = try reader.read(into: &target) * channelCount
            guard count > 0 else { return samples }
            guard samples.count + count <= limit else {
                throw WAVError(.tooLarge, "\(name) holds more than \(limit) samples. Name a shorter file.")
            }
            samples.append(contentsOf: block[..<count])
        }
    }
}
