import CallBasics
import Glibc

/// An open file, closed when the object goes.
///
/// Thread: one at a time; its calls wait for the disk, so never the media thread.
final class POSIXFile: ByteSource {
    let name: String
    /// What is waited for when it is a pipe or a terminal that is written to.
    private(set) var pipe: PipeEnd?
    /// Whether the program was about to end before whoever writes into it was done.
    private(set) var isGivenUp = false
    private var descriptor: Int32
    /// Whether others write into what is read: it is no file on a disk.
    private var hasWriter = false

    /// Opens the file at `path` to read it.
    init(reading path: String) throws(WAVError) {
        name = path
        descriptor = ReadingEnd.open(path)
        guard descriptor >= 0 else {
            throw WAVError(.unreadable, "Cannot open \(path): \(Self.reason). Check the path and its permissions.")
        }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { return }
        guard status.st_mode & S_IFMT != S_IFDIR else {
            Glibc.close(descriptor)
            descriptor = -1
            throw WAVError(.unreadable, "\(path) is a directory. Name a WAV file in it.")
        }
        hasWriter = status.st_mode & S_IFMT != S_IFREG
    }

    /// Creates the file at `path`, or empties the one that is there.
    init(writing path: String) throws(WAVError) {
        name = path
        descriptor = Glibc.open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o666)
        guard descriptor >= 0 else {
            throw WAVError(
                .unwritable,
                "Cannot write \(path): \(Self.reason). Check that its folder exists and may be written."
            )
        }
        pipe = PipeEnd(descriptor)
    }

    deinit {
        close()
    }

    /// Bytes of a regular file; nil for a pipe or a device.
    var byteCount: Int? {
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
        return Int(status.st_size)
    }

    /// Whether the file is one in which bytes already written can be written again.
    var isSeekable: Bool { byteCount != nil }

    func read(into target: UnsafeMutableRawBufferPointer) throws(WAVError) -> Int {
        var total = 0
        while total < target.count, let base = target.baseAddress {
            guard !hasWriter || ReadingEnd.wait(for: descriptor) else {
                isGivenUp = true
                break
            }
            let count = Glibc.read(descriptor, base + total, target.count - total)
            if count == 0 { break }
            if count < 0 {
                // Without blocking, another reader may have been faster.
                if errno == EINTR || errno == EAGAIN { continue }
                throw WAVError(.ioFailure, "Reading \(name) failed: \(Self.reason). Copy the file to a sound disk.")
            }
            total += count
        }
        return total
    }

    func seek(to offset: Int) -> Bool { lseek(descriptor, off_t(offset), SEEK_SET) >= 0 }

    /// Writes all of `bytes` at the end of what was written before.
    func write(_ bytes: UnsafeRawBufferPointer) throws(WAVError) {
        do throws(PipeEnd.Failure) {
            try PipeEnd.write(bytes, to: descriptor, pipe)
        } catch {
            throw WAVError(.ioFailure, error.message(name))
        }
    }

    /// Writes all of `bytes` at `offset`, leaving the position of `write` where it is.
    func overwrite(_ bytes: UnsafeRawBufferPointer, at offset: Int) throws(WAVError) {
        var total = 0
        while total < bytes.count, let base = bytes.baseAddress {
            let count = pwrite(descriptor, base + total, bytes.count - total, off_t(offset + total))
            if count < 0 {
                if errno == EINTR { continue }
                throw writeFailure
            }
            total += count
        }
    }

    /// Makes the file end after `byteCount` bytes; what is written next stands there.
    func truncate(to byteCount: Int) throws(WAVError) {
        guard ftruncate(descriptor, off_t(byteCount)) == 0, seek(to: byteCount) else { throw writeFailure }
    }

    /// Closes the file; further calls fail or do nothing.
    func close() {
        guard descriptor >= 0 else { return }
        Glibc.close(descriptor)
        descriptor = -1
    }

    private var writeFailure: WAVError {
        WAVError(.ioFailure, PipeEnd.Failure.system(errno: errno).message(name))
    }

    private static var reason: String { String(cString: strerror(errno)) }
}
