import time,numpy as np,ascendsched as asc
from onnx import helper as h, TensorProto as T
def t(M,N,K):
    g=h.make_graph([h.make_node('Gemm',['x','w'],['y'],transB=1)],'g',[h.make_tensor_value_info('x',1,[M,K]),h.make_tensor_value_info('w',1,[N,K])],[h.make_tensor_value_info('y',1,[M,N])])
    e=asc.compile(h.make_model(g,opset_imports=[h.make_opsetid('',17)],ir_version=9),threads=1)
    x=np.random.randn(M,K).astype('f');w=np.random.randn(N,K).astype('f')
    ts=[]
    for i in range(60):
        a=time.process_time();e.run({'x':x,'w':w});ts.append(time.process_time()-a)
    print(M,N,K,'%.3f ms'%(min(ts)*1e3), '%.0f GFLOPs'%(2*M*N*K/min(ts)/1e9))
for M in (4,8,16,32,64): t(M,512,4608)
for M in (4,16,64): t(M,256,2304)
