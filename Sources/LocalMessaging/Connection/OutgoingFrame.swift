import NIOCore

/// A frame on its way out.
struct OutgoingFrame: Sendable {
    let header: ByteBuffer
    let blob: ByteBuffer
    let files: [OpenFile]

    var byteCount: Int { header.readableBytes + blob.readableBytes }
}

extension OutgoingFrame {
    /// A frame with its attachments: blobs that are large, or memory already, become its first descriptor.
    init(
        _ frame: Frame,
        _ attachments: Attachments,
        _ configuration: MessagingConfiguration,
        allocator: ByteBufferAllocator
    ) throws(MessagingError) {
        var frame = frame
        guard frame.topic.utf8.count <= UInt8.max else {
            throw .topicTooLong(byteCount: frame.topic.utf8.count)
        }
        var files = attachments.files
        switch attachments.blob?.storage {
        case .buffer(let bytes) where bytes.readableBytes < configuration.sealedBlobByteCount: frame.blob = bytes
        case nil: break
        default:
            do {
                if let memory = try attachments.blob?.sealed() { files.insert(memory.file, at: 0) }
                frame.hasSealedBlob = true
            } catch {
                throw error as? MessagingError ?? .attachments("\(error)")
            }
        }
        guard files.count <= Attachments.maximumFileCount else {
            throw .attachments("\(files.count) descriptors; \(Attachments.maximumFileCount) are the most.")
        }
        frame.fileCount = files.count
        self.files = files
        header = frame.serialized(with: allocator)
        blob = frame.blob
    }
}
