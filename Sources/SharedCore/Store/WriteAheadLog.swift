internal import Glibc

/// The log beside a database, as far as it has to be known: which pages it holds.
///
///     0        magic, version, page size, sequence     4 bytes each, big-endian
///     16       salt                                    8 bytes
///     24       checksum                                8 bytes
///     32       page number, size after commit          4 bytes each    ─┐
///     40       salt: as above, or the frame is old     8 bytes          │ one frame
///     48       checksum                                8 bytes          │
///     56       the page                                page size bytes ─┘
///
/// Source: SQLite, "WAL-mode File Format" (https://www.sqlite.org/walformat.html).
enum WriteAheadLog {
    /// The numbers of the pages in a log; none when there is no log.
    static func pages(_ path: String) -> Set<Int> {
        // SQLite takes no lock on this file, so closing it again drops none.
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard descriptor >= 0 else { return [] }
        defer { close(descriptor) }
        var pages: Set<Int> = []
        guard let header = read(descriptor, at: 0, count: headerByteCount) else { return [] }
        let pageByteCount = integer(header, at: 8)
        let frameByteCount = frameHeaderByteCount + pageByteCount
        var offset = headerByteCount
        while let frame = read(descriptor, at: offset, count: frameHeaderByteCount), frame[8..<16] == header[16..<24],
            // The page itself must be there to its end.
            read(descriptor, at: offset + frameByteCount - 1, count: 1) != nil
        {
            pages.insert(integer(frame, at: 0))
            offset += frameByteCount
        }
        return pages
    }

    private static func read(_ descriptor: CInt, at offset: Int, count: Int) -> [UInt8]? {
        var bytes = [UInt8](repeating: 0, count: count)
        return pread(descriptor, &bytes, count, off_t(offset)) == count ? bytes : nil
    }

    private static func integer(_ bytes: [UInt8], at offset: Int) -> Int {
        bytes[offset..<offset + 4].reduce(0) { $0 << 8 | Int($1) }
    }

    private static var headerByteCount: Int { 32 }
    private static var frameHeaderByteCount: Int { 24 }
}
